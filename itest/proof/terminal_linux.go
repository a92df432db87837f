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

// terminal is where a member shows its live counts: one that is killed can't
// say any more how much it was delivered.
type terminal struct {
	own, end *os.File
	shown    atomic.Int64
	done     chan struct{}
}

// openTerminal opens a terminal of which everything goes to a log, too.
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
		// Wide enough for every count of a line.
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

// given says that the process has its end.
func (t *terminal) given() { _ = t.end.Close() }

var deliveries = regexp.MustCompile(`  deliveries (\d+)`)

// read reads until the process has ended. A number that is cut in two is read
// as a smaller one, which does no harm.
func (t *terminal) read(log io.WriteCloser) {
	defer close(t.done)
	defer log.Close()
	piece := make([]byte, 32<<10)
	var line []byte
	for {
		n, err := t.own.Read(piece)
		if err != nil {
			return // the other end is closed
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

// wait waits until everything is read, after the process has ended.
func (t *terminal) wait() {
	<-t.done
	_ = t.own.Close()
}

// deliveries is what was last shown.
func (t *terminal) deliveries() int64 { return t.shown.Load() }
