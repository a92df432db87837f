package file

import (
	"io"
	"time"

	"github.com/semel-go/semel/internal/worker"
)

// pump reads from a reader that cannot be told to stop waiting, such as a
// pipe or a terminal on standard input: Go gives those no deadline when they
// were opened by someone else. Its goroutine waits instead of the caller, and
// reads only what it was asked for.
type pump struct {
	reader io.Reader
	rouse  func()
	group  worker.Group
	wanted chan struct{}
	got    chan piece
	asked  bool
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

// run answers each want with one piece. It ends when the pump is closed and
// the read that is under way, if one is, has returned.
func (p *pump) run() {
	buffer := make([]byte, chunk/2)
	for range p.wanted {
		n, err := p.reader.Read(buffer)
		p.got <- piece{buffer[:n], err}
		p.rouse()
	}
}

// next returns a piece if one is there, and asks for one if not. The piece is
// valid until the following call.
func (p *pump) next() (piece, bool) {
	if !p.asked {
		p.asked = true
		p.wanted <- struct{}{}
	}
	select {
	case got := <-p.got:
		p.asked = false
		return got, true
	default:
		return piece{}, false
	}
}

// close ends the goroutine. Where the reader knows deadlines it waits for
// that; elsewhere a read that is under way ends with the next input or with
// the process, and what it reads is dropped.
func (p *pump) close() {
	close(p.wanted)
	r, ok := p.reader.(interface{ SetReadDeadline(time.Time) error })
	if ok && r.SetReadDeadline(time.Now()) == nil {
		p.group.Wait()
		_ = r.SetReadDeadline(time.Time{}) // the reader is its owner's again
	}
}
