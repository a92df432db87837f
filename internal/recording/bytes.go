package recording

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// writer appends what is recorded to bytes.
type writer struct {
	out  []byte
	hide *hider
	sum  [16]byte
}

func (w *writer) byte(b byte)             { w.out = append(w.out, b) }
func (w *writer) uint(n uint64)           { w.out = binary.AppendUvarint(w.out, n) }
func (w *writer) int(n int64)             { w.out = binary.AppendVarint(w.out, n) }
func (w *writer) fixed(n uint64)          { w.out = binary.LittleEndian.AppendUint64(w.out, n) }
func (w *writer) time(d time.Duration)    { w.int(int64(d)) }
func (w *writer) reason(r semel.Reason)   { w.string(w.hide.reason(r)) }
func (w *writer) failed(err error) uint64 { return bit(err != nil, 0) }

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.out = append(w.out, s...)
}

// secret writes what names a message, or its hash.
func (w *writer) secret(s string) {
	if s == "" || w.hide.ids {
		w.string(s)
		return
	}
	w.uint(8)
	w.fixed(maphash.String(w.hide.seed, s))
}

// print writes a fingerprint, of which only that it is another one is of use.
func (w *writer) print(p semel.Fingerprint) {
	w.byte(p.Version)
	if p.Sum == ([16]byte{}) {
		w.fixed(0)
		return
	}
	w.sum = p.Sum // of its own, the hash would have it allocated
	w.fixed(maphash.Bytes(w.hide.seed, w.sum[:]))
}

// list writes indexes, which mostly are those from 0 on.
func (w *writer) list(all []int) {
	inRow := true
	for i, n := range all {
		inRow = inRow && i == n
	}
	w.uint(uint64(len(all))<<1 | bit(!inRow, 0))
	if !inRow {
		for _, n := range all {
			w.int(int64(n))
		}
	}
}

func bit(is bool, n int) uint64 {
	if is {
		return 1 << n
	}
	return 0
}

// hider keeps names out of recordings; nil hides nothing.
type hider struct {
	seed maphash.Seed
	ids  bool // identities are asked for
}

// handlers is what is written for the reason of a handler.
const handlers = "a handler's reason"

func (h *hider) reason(r semel.Reason) string {
	if r == "" || h == nil || h.ids || measure.OwnReason(r) {
		return string(r)
	}
	return handlers
}

// reader reads what a writer wrote. The first fault is kept, and nothing is read behind it.
type reader struct {
	in  []byte
	err error
}

var errCut = errors.New("the recording is damaged: it ends in the midst of a step")

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.in = nil
}

func (r *reader) byte() byte {
	if len(r.in) == 0 {
		r.fail(errCut)
		return 0
	}
	b := r.in[0]
	r.in = r.in[1:]
	return b
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.in)
	if n <= 0 {
		r.fail(errCut)
		return 0
	}
	r.in = r.in[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.in)
	if n <= 0 {
		r.fail(errCut)
		return 0
	}
	r.in = r.in[n:]
	return v
}

// count reads how many follow, each of one byte at least.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.in)) {
		r.fail(errCut)
		return 0
	}
	return int(n)
}

func (r *reader) take(n int) []byte {
	if n > len(r.in) {
		r.fail(errCut)
		return make([]byte, n)
	}
	b := r.in[:n]
	r.in = r.in[n:]
	return b
}

func (r *reader) fixed() uint64        { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) time() time.Duration  { return time.Duration(r.int()) }
func (r *reader) string() string       { return strings.Clone(string(r.take(r.count()))) }
func (r *reader) reason() semel.Reason { return semel.Reason(r.string()) }

func (r *reader) print() (p semel.Fingerprint) {
	p.Version = r.byte()
	copy(p.Sum[:], r.take(8))
	return p
}

func (r *reader) list() []int {
	n := r.uint()
	out := n&1 == 1
	if n >>= 1; n > 1<<20 || out && n > uint64(len(r.in)) {
		r.fail(errCut)
		return nil
	}
	var all []int
	for i := range int(n) {
		if out {
			i = int(r.int())
		}
		all = append(all, i)
	}
	return all
}

// errUnrecorded stands for an error of which only is recorded that there was one.
var errUnrecorded = errors.New("its text is not recorded")

func wasError(is bool) error {
	if is {
		return errUnrecorded
	}
	return nil
}
