package proof

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal on which a member displays its live counts. The fault test reads the counts from the
// terminal, because a killed member cannot report its deliveries.
type terminal struct {
	own, end *os.File
	shown    atomic.Int64
	done     chan struct{}
}

// openTerminal opens a pseudo-terminal and copies its output to a log file.
func openTerminal(log string) (*terminal, error) {
	to, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	t := &terminal{done: make(chan struct{})}
	if t.own, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, err
	}
	number := 0
	if err = unix.IoctlSetPointerInt(int(t.own.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		number, err = unix.IoctlGetInt(int(t.own.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		// The terminal is wide enough to show all counts on one line.
		err = unix.IoctlSetWinsize(int(t.own.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 400})
	}
	if err == nil {
		t.end, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, err
	}
	go t.read(to)
	return t, nil
}

// closeProcessEnd closes the fault test's copy of the process's end of the terminal. The caller must have started the
// process before.
func (t *terminal) closeProcessEnd() { _ = t.end.Close() }

var deliveries = regexp.MustCompile(`  deliveries (\d+)`)

// read reads until the process has ended. If a number arrives in two parts, read may see a number that is too
// small; the next number corrects it.
func (t *terminal) read(log io.WriteCloser) {
	defer close(t.done)
	defer log.Close()
	piece := make([]byte, 32<<10)
	var line []byte
	for {
		n, err := t.own.Read(piece)
		if err != nil {
			return // an error means that the process closed its end
		}
		_, _ = log.Write(piece[:n])
		line = append(line, piece[:n]...)
		for _, m := range deliveries.FindAllSubmatch(line, -1) {
			if count, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil && count > t.shown.Load() {
				t.shown.Store(count)
			}
		}
		line = line[max(0, len(line)-100):]
	}
}

// wait waits until all output is read. The process must have ended before.
func (t *terminal) wait() {
	<-t.done
	_ = t.own.Close()
}

// shownDeliveries returns the last number that the process displayed.
func (t *terminal) shownDeliveries() int64 { return t.shown.Load() }
