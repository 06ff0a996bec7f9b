// The page reads without this: it opens what is folded for paper, and offers the JSON as a file.
const folded = () => document.querySelectorAll('details:not([open])');
let opened = [];
addEventListener('beforeprint', () => { opened = [...folded()]; opened.forEach(d => d.open = true); });
addEventListener('afterprint', () => { opened.forEach(d => d.open = false); opened = []; });
const json = document.getElementById('json');
json.href = URL.createObjectURL(
  new Blob([document.getElementById('data').textContent], { type: 'application/json' }));
json.hidden = false;
