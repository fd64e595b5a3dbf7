//! When a server is told to stop. Each system has its own ways: signals on Unix, console events on Windows.

use anyhow::Context;

/// Resolves when the server is told to stop, by SIGTERM or Ctrl-C.
///
/// # Errors
/// If the system refuses handlers.
#[cfg(unix)]
pub fn requested() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut asked = signal(SignalKind::terminate()).context("waiting for SIGTERM")?;
    let mut typed = signal(SignalKind::interrupt()).context("waiting for Ctrl-C")?;
    Ok(async move {
        tokio::select! {
            _ = asked.recv() => {}
            _ = typed.recv() => {}
        }
    })
}

/// Resolves when the server is told to stop: by Ctrl-C, when its console is closed, or when the system shuts down.
///
/// # Errors
/// If the system refuses handlers.
#[cfg(windows)]
pub fn requested() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
    let mut typed = ctrl_c().context("waiting for Ctrl-C")?;
    let mut broken = ctrl_break().context("waiting for Ctrl-Break")?;
    let mut closed = ctrl_close().context("waiting for the console to close")?;
    let mut ending = ctrl_shutdown().context("waiting for the system to shut down")?;
    Ok(async move {
        tokio::select! {
            _ = typed.recv() => {}
            _ = broken.recv() => {}
            _ = closed.recv() => {}
            _ = ending.recv() => {}
        }
    })
}
