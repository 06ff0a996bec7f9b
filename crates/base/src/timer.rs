//! Time limits that cost nothing until they pass: timers of the kernel instead of the runtime's.
//!
//! It knows no other room.
//!
//! A timer of the runtime that is pending makes it look at the clock and at its wheel each time it
//! waits, and the kernel set a timer of its own for that: a tenth of what a point read costs. A timer of
//! the kernel that is set already (timerfd_create(2)) is one more file to wait for, and is left alone.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

/// Wakes whoever waits for something that may take so long and no longer. It is set anew when it has
/// gone off, not for each wait.
pub struct Alarm {
    timer: Timer,
    /// When it goes off, or went off; none where it was never set.
    at: Option<Instant>,
    /// Whom it wakes.
    who: Option<Waker>,
}

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// Where there are no more files to be had.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm { timer: Timer::new()?, at: None, who: None })
    }

    /// Whether `deadline` has come; where it has not, who asks is woken when it comes, or earlier.
    pub fn is_over(&mut self, cx: &mut Context<'_>, deadline: Instant, now: Instant) -> bool {
        if now >= deadline {
            return true;
        }
        // Earlier than needed is well, later is not.
        if self.at.is_none_or(|at| at <= now || at > deadline) {
            self.set(deadline, now);
        }
        if self.who.as_ref().is_some_and(|who| who.will_wake(cx.waker())) {
            return false;
        }
        while let Poll::Ready(fired) = self.timer.poll_fired(cx) {
            let now = Instant::now();
            if fired.is_err() || now >= deadline {
                return true;
            }
            self.set(deadline, now);
        }
        self.who = Some(cx.waker().clone());
        false
    }

    fn set(&mut self, deadline: Instant, now: Instant) {
        self.timer.set(deadline - now);
        (self.at, self.who) = (Some(deadline), None);
    }
}

/// A timer of the kernel, and the same file as something the runtime can wait for: it reads eight
/// bytes once the moment has come, as from a pipe.
#[cfg(target_os = "linux")]
pub struct Timer {
    timer: nix::sys::timerfd::TimerFd,
    fires: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Timer {
    /// One that is not set.
    ///
    /// # Errors
    /// Of the system.
    pub fn new() -> io::Result<Timer> {
        use std::os::fd::AsFd;

        use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(io::Error::from)?;
        let file = timer.as_fd().try_clone_to_owned()?;
        let fires = tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(file)?;
        Ok(Timer { timer, fires })
    }

    /// Lets it go off after so long; what it was set to before is forgotten.
    pub fn set(&mut self, after: Duration) {
        use nix::sys::timerfd::{Expiration, TimerSetTimeFlags};
        let after = Expiration::OneShot(after.max(Duration::from_nanos(1)).into());
        // It fails for what is no timer, and for times that no duration is.
        let _ = self.timer.set(after, TimerSetTimeFlags::empty());
    }

    /// Ready once it has gone off, since it was set or since this was ready.
    pub fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut count = [0; 8];
        let mut count = tokio::io::ReadBuf::new(&mut count);
        // That it had gone off before it was set is no reading, and waits on.
        let read = tokio::io::AsyncRead::poll_read(Pin::new(&mut self.fires), cx, &mut count);
        Poll::Ready(ready!(read))
    }
}

impl Timer {
    /// Waits so long.
    pub async fn wait(&mut self, time: Duration) {
        self.set(time);
        if std::future::poll_fn(|cx| self.poll_fired(cx)).await.is_err() {
            // Never seen; a coarse wait is still a wait.
            tokio::time::sleep(time).await;
        }
    }
}

/// A timer of the runtime, where the kernel has none of that kind.
#[cfg(not(target_os = "linux"))]
pub struct Timer(Pin<Box<tokio::time::Sleep>>);

#[cfg(not(target_os = "linux"))]
impl Timer {
    /// One that is not set.
    ///
    /// # Errors
    /// None.
    pub fn new() -> io::Result<Timer> {
        Ok(Timer(Box::pin(tokio::time::sleep(Duration::from_secs(3600)))))
    }

    /// Lets it go off after so long; what it was set to before is forgotten.
    pub fn set(&mut self, after: Duration) {
        self.0.as_mut().reset(tokio::time::Instant::now() + after);
    }

    /// Ready once it has gone off, since it was set or since this was ready.
    pub fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(std::future::Future::poll(self.0.as_mut(), cx));
        self.set(Duration::from_secs(3600));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    /// Waits by an alarm until it is over, and says how often it was asked.
    async fn wait(alarm: &mut Alarm, deadline: Instant) -> usize {
        let mut asked = 0;
        poll_fn(|cx| {
            asked += 1;
            match alarm.is_over(cx, deadline, Instant::now()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        asked
    }

    /// Asks an alarm once whether it is over.
    async fn once(alarm: &mut Alarm, deadline: Instant) -> bool {
        poll_fn(|cx| Poll::Ready(alarm.is_over(cx, deadline, Instant::now()))).await
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_in_time_and_not_all_the_time() {
        let mut alarm = Alarm::new().unwrap();
        for _ in 0..3 {
            let deadline = Instant::now() + SHORT;
            assert!(wait(&mut alarm, deadline).await <= 3);
            assert!(Instant::now() >= deadline);
        }
    }

    #[tokio::test]
    async fn what_is_set_for_earlier_serves_a_later_deadline_and_another_task() {
        let mut alarm = Alarm::new().unwrap();
        let early = Instant::now() + SHORT;
        assert!(!once(&mut alarm, early).await);
        assert_eq!(alarm.at, Some(early));
        // What was asked for is there; the next has more time, and is in another task.
        let task = tokio::spawn(async move {
            let late = early + SHORT;
            wait(&mut alarm, late).await;
            assert!(Instant::now() >= late);
            alarm
        });
        let mut alarm = task.await.unwrap();
        // Later than needed is not well.
        let far = Instant::now() + Duration::from_secs(3600);
        assert!(!once(&mut alarm, far).await);
        let near = Instant::now() + SHORT;
        wait(&mut alarm, near).await;
        assert!(Instant::now() < far);
    }

    #[tokio::test]
    async fn one_that_went_off_while_nobody_waited_is_set_again() {
        let mut alarm = Alarm::new().unwrap();
        let first = Instant::now() + SHORT;
        assert!(!once(&mut alarm, first).await);
        // Somebody else's timer: this one goes off unheard.
        let mut other = Timer::new().unwrap();
        other.set(2 * SHORT);
        poll_fn(|cx| other.poll_fired(cx)).await.unwrap();
        let second = Instant::now() + SHORT;
        wait(&mut alarm, second).await;
        assert!(Instant::now() >= second);
    }
}
