package file

import (
	"io"
	"time"

	"github.com/semel-go/semel/internal/worker"
)

// pump reads from a reader whose reads cannot be interrupted, such as a pipe or a terminal on standard input: Go
// supports no deadlines for files that another program opened. A goroutine of the pump waits instead of the caller, and
// reads only when the caller asks for data.
type pump struct {
	reader    io.Reader
	rouse     func()
	group     worker.Group
	wanted    chan struct{}
	got       chan piece
	requested bool
}

type piece struct {
	bytes []byte
	err   error
}

func newPump(r io.Reader, rouse func()) *pump {
	p := &pump{reader: r, rouse: rouse, wanted: make(chan struct{}, 1), got: make(chan piece, 1)}
	p.group.Go(p.run)
	return p
}

// run answers each request with one piece of data. The loop in run ends after the pump is closed and the read in
// progress has returned.
func (p *pump) run() {
	buffer := make([]byte, chunk/2)
	for range p.wanted {
		n, err := p.reader.Read(buffer)
		p.got <- piece{buffer[:n], err}
		p.rouse()
	}
}

// nextPiece returns a piece of data if one is available. If no piece is available, nextPiece requests one. A piece is
// valid until the following call of nextPiece.
func (p *pump) nextPiece() (piece, bool) {
	if !p.requested {
		p.requested = true
		p.wanted <- struct{}{}
	}
	select {
	case got := <-p.got:
		p.requested = false
		return got, true
	default:
		return piece{}, false
	}
}

// close ends the goroutine. If the reader supports deadlines, close waits for the goroutine. If the reader supports no
// deadlines, a read in progress ends with the next input or with the process, and its data is dropped.
func (p *pump) close() {
	close(p.wanted)
	r, ok := p.reader.(interface{ SetReadDeadline(time.Time) error })
	if ok && r.SetReadDeadline(time.Now()) == nil {
		p.group.Wait()
		_ = r.SetReadDeadline(time.Time{}) // restore the reader for its owner
	}
}
