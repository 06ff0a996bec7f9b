# Real Ruby's side of the tests of Marshal, MessagePack and CBOR.
#
#   ruby peer.rb show             reads dumps from stdin, one after another; prints each as a line
#   ruby peer.rb show msgpack     reads values from stdin, each in hex on a line; so does "show cbor"
#   ruby peer.rb again msgpack    the same, and prints what Ruby writes of each, in hex
#   ruby peer.rb check msgpack    only looks whether the library is there, and exits with 3 if not
#   ruby peer.rb make SEED COUNT  makes objects; prints each dump in hex, a tab, and the line
#
# A line says what a value is, in a notation of its own: n t f, i-12, d<bits of the float>,
# s<text in hex>, b<bytes in hex>, T<seconds>.<nanoseconds>, D<sign><digits>e<exponent>, [a,b], {k:v}.
require "bigdecimal"
require "time"

class Plain
  def initialize(a, b) = (@a, @b_c = a, b)
end
class Empty; end
class Dumped
  attr_reader :text
  def initialize(text) = @text = text
  def _dump(_level) = @text
  def self._load(text) = new(text)
end
class Marshaled
  attr_reader :data
  def initialize(data) = @data = data
  def marshal_dump = @data
  def marshal_load(data) = @data = data
end
class MyString < String; end
class MyArray < Array; end
class MyHash < Hash; end
Point = Struct.new(:x, :y)
module Extra; end

def hex(text) = text.b.unpack1("H*")

# A string is text where its encoding says so and it is valid.
def text?(s)
  case s.encoding
  when Encoding::BINARY then false
  when Encoding::UTF_8 then s.valid_encoding?
  else !s.encoding.dummy? && s.encoding.ascii_compatible? && s.b.bytes.all? { |b| b < 128 }
  end
end

def string(s) = (text?(s) ? "s" : "b") + hex(s)

def pairs(entries) = "{" + entries.map { |k, v| key(k) + ":" + v }.join(",") + "}"

def key(k)
  case k
  when nil then "s" + hex("null")
  when true, false, Integer, Float then "s" + hex(k.to_s)
  when Symbol then string(k.to_s)
  when String then k.encoding == Encoding::BINARY ? string(k.dup.force_encoding("UTF-8")) : string(k)
  else raise "a key #{k.inspect}"
  end
end

# What Ruby's CBOR hands over as it is: times as text, decimals.
def tagged(tag, value)
  case tag
  when 0
    seconds, fraction = value.match(/\A([^.]*?)(?:\.(\d+))?Z\z/).captures
    "T#{Time.iso8601("#{seconds}Z").to_i}.#{fraction.to_s.ljust(9, "0").to_i}"
  when 4 then show(BigDecimal("#{value[1]}e#{value[0]}"))
  else raise "tag #{tag}"
  end
end

def show(x)
  case x
  when nil then "n"
  when true then "t"
  when false then "f"
  when Integer then "i#{x}"
  when Float then x.nan? ? "dnan" : "d" + [x].pack("G").unpack1("H*")
  when BigDecimal
    sign, digits, _, exponent = x.split
    x.finite? ? "D#{sign < 0 || x.sign < 0 ? "-" : ""}#{digits}e#{x.zero? ? 0 : exponent}" : "D#{x}"
  when Symbol then string(x.to_s)
  when String then string(x)
  when ->(x) { x.class.name == "CBOR::Tagged" } then tagged(x.tag, x.value)
  when Time then "T#{x.to_i}.#{x.nsec}"
  when Array then "[" + x.map { |v| show(v) }.join(",") + "]"
  when Hash then pairs(x.map { |k, v| [k, show(v)] })
  when Struct then pairs([["^struct", show(x.class.name)]] + x.each_pair.map { |k, v| [k, show(v)] })
  when Range
    pairs([["^class", show("Range")], ["excl", show(x.exclude_end?)], ["begin", show(x.begin)], ["end", show(x.end)]])
  when Rational then pairs([["^class", show("Rational")], ["^data", show([x.numerator, x.denominator])]])
  when Complex then pairs([["^class", show("Complex")], ["^data", show([x.real, x.imaginary])]])
  when Regexp
    pairs([["^class", show("Regexp")], ["^source", show(x.source)], ["^options", show(x.options & 0xff)]])
  when Class then pairs([["^class", show("Class")], ["^name", show(x.name)]])
  when Module then pairs([["^class", show("Module")], ["^name", show(x.name)]])
  when Dumped then pairs([["^class", show("Dumped")], ["^dump", show(x.text)]])
  when Marshaled then pairs([["^class", show("Marshaled")], ["^data", show(x.data)]])
  when Exception
    pairs([["^class", show(x.class.name)], ["mesg", show(x.message)], ["bt", show(x.backtrace)]])
  else
    ivars = x.instance_variables.map { |n| [n.to_s.delete_prefix("@"), show(x.instance_variable_get(n))] }
    pairs([["^class", show(x.class.name)]] + ivars)
  end
end

class Maker
  def initialize(seed) = (@r, @pool = Random.new(seed), [])

  def pick(*of) = of[@r.rand(of.size)]

  def integer
    n = @r.rand(2**pick(1, 3, 7, 8, 9, 16, 29, 30, 31, 32, 61, 62, 63, 64, 65, 127, 128, 129, 500, 3000))
    pick(n, -n, n + 1, -n - 1)
  end

  def float
    pick(0.0, -0.0, Float::INFINITY, -Float::INFINITY, Float::NAN, 1.0, 100.0, 1e15, 1e16, 1e17, 1e-4, 1e-5,
         Float::MAX, Float::MIN, Float::EPSILON, 5e-324, @r.rand, @r.rand(1000) / 8.0, -@r.rand * 10**@r.rand(300),
         [@r.bytes(8)].first.unpack1("G"))
  end

  def string
    return pick("", "a", "name", "x" * pick(122, 123, 255, 256, 70_000)) if @r.rand(3) == 0
    plain = Array.new(@r.rand(12)) { pick(*"a".."z", " ", "-") }.join
    wide = plain + pick("", "é", "日本", "😀")
    case @r.rand(12)
    when 0, 1, 2 then wide
    when 3 then plain.encode("US-ASCII")
    when 4 then @r.bytes(@r.rand(12))
    when 5 then (plain + pick("", "é")).encode("ISO-8859-1")
    when 6 then (plain + pick("", "日本")).encode("Shift_JIS")
    when 7 then wide.encode("UTF-16LE")
    when 8 then (plain + pick("", "日本")).encode("EUC-JP")
    when 9 then @r.bytes(4).force_encoding("UTF-8")
    when 10 then wide.dup.tap { |s| s.instance_variable_set(:@note, [plain]) }
    else MyString.new(wide)
    end
  end

  def time
    seconds = pick(@r.rand(2**31), -@r.rand(2**36), @r.rand(2**37), 0)
    t = case @r.rand(4)
        when 0 then Time.at(seconds)
        when 1 then Time.at(seconds, @r.rand(1_000_000), :usec)
        when 2 then Time.at(seconds, @r.rand(1_000_000_000), :nsec)
        else Time.at(seconds + Rational(@r.rand(1000), 7))
        end
    pick(t, t.utc, t.getlocal("+02:00"), t.getlocal("-03:30"))
  end

  def name = pick("ind1", "ind2", "subfields", "a", "b", "c", "id", "größe", "x" * 70)

  def key(n) = pick(name, name.to_sym, name + n.to_s, n, -n, nil, n + 0.5, (name + n.to_s).b)

  def value(depth)
    made = depth > 4 ? single : many(depth)
    @pool << made if @r.rand(3) == 0 && @pool.size < 40
    made
  end

  def single
    case @r.rand(14)
    when 0 then nil
    when 1 then pick(true, false)
    when 2, 3 then integer
    when 4 then float
    when 5, 6, 7 then string
    when 8 then name.to_sym
    when 9 then time
    when 10 then BigDecimal(pick("0", "-0", "1.5", "-123.456e-20", "1e400", "0.001", "12345678901234567890.5"))
    when 11 then pick(Rational(@r.rand(99), 7), Complex(1, @r.rand(9)), 1..@r.rand(9), ("a"..."z"), (1..))
    when 12 then pick(/ab/, /a.b/mi, /é/x, String, Comparable, Plain, File::Stat)
    else pick(Dumped.new(string.then { |s| String.new(s.b).force_encoding(s.encoding) }), RuntimeError.new(name), Empty.new)
    end
  end

  def many(depth)
    inner = -> { value(depth + 1) }
    case @r.rand(16)
    when 0, 1, 2 then Array.new(@r.rand(6)) { inner.() }
    when 3, 4, 5, 6 then Array.new(@r.rand(5)) { |n| [key(n), inner.()] }.to_h
    when 7 then Array.new(@r.rand(4)) { |n| [key(n), inner.()] }.to_h.tap { |h| h.default = name }
    when 8 then Point.new(inner.(), inner.())
    when 9 then Plain.new(inner.(), inner.())
    when 10 then Marshaled.new([inner.()])
    when 11 then MyArray.new([inner.()])
    when 12 then MyHash.new.merge!({ name => inner.() })
    when 13 then [inner.()].extend(Extra)
    when 14 then @pool.empty? ? [] : [@pool[@r.rand(@pool.size)], @pool[@r.rand(@pool.size)]]
    else single
    end
  end
end

# Reader and writer of a library, by its name.
def library(name)
  case name
  when "msgpack"
    require "msgpack"
    factory = MessagePack::Factory.new
    factory.register_type(-1, Time, packer: MessagePack::Time::Packer, unpacker: MessagePack::Time::Unpacker)
    [->(bytes) { factory.load(bytes) }, ->(value) { factory.dump(value) }]
  when "cbor"
    require "cbor"
    [->(bytes) { CBOR.decode(bytes) }, ->(value) { CBOR.encode(value) }]
  end
rescue LoadError
  exit 3
end

read, write = library(ARGV[1])
if read
  $stdin.each_line do |line|
    value = read.([line.chomp].pack("H*"))
    puts ARGV[0] == "show" ? show(value) : hex(write.(value))
  end
  exit
end

case ARGV[0]
when "show"
  $stdin.binmode
  puts show(Marshal.load($stdin)) until $stdin.eof?
when "again"
  $stdin.binmode
  puts hex(Marshal.dump(Marshal.load($stdin))) until $stdin.eof?
when "make"
  maker = Maker.new(ARGV[1].to_i)
  ARGV[2].to_i.times do
    object = maker.value(0)
    puts hex(Marshal.dump(object)) + "\t" + show(object)
  end
end
