package recording

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// writer appends events, actions and snapshots of the machine's state (pictures) as JSON. In contrast to encoding/json,
// writer allocates no memory for a message, and also writes unexported fields.
type writer struct {
	out   []byte
	hide  *hider
	known *known
	sum   [16]byte
	begun begun

	// The field picture means that a snapshot of the state is being written. Several pointers may have the same target,
	// so a pointer or a map is written as a number, and the targets follow in the order of their numbers. The field
	// numbers contains the numbers of the targets so far. The field todo contains the targets that are not written yet.
	picture bool
	numbers map[unsafe.Pointer]uint64
	todo    []reflect.Value
}

// begun is a Begin action together with the entries of its batch.
type begun struct {
	Flight  *machine.Flight
	Entries []machine.Entry
	Serial  bool
}

func (w *writer) text(s string) { w.out = append(w.out, s...) }

// The method event writes the line of an event.
func (w *writer) event(e machine.Event, at time.Duration) {
	w.text(`{"at":`)
	w.out = strconv.AppendInt(w.out, int64(at), 10)
	w.text(`,"event":"`)
	w.what(reflect.ValueOf(e))
	w.text("}\n")
}

// actions writes the line of a step's actions.
func (w *writer) actions(all []machine.Action) {
	w.text(`{"actions":[`)
	for i, a := range all {
		if i > 0 {
			w.text(",")
		}
		w.text(`{"action":"`)
		switch a := a.(type) {
		case machine.Begin:
			w.begun = begun{a.Flight, a.Flight.Entries, a.Serial}
			w.text(`Begin","with":`)
			w.object(reflect.ValueOf(&w.begun).Elem())
		case *machine.Settle:
			w.what(reflect.ValueOf(a).Elem())
		default:
			w.what(reflect.ValueOf(a))
		}
		w.text("}")
	}
	w.text("]}\n")
}

// The method what writes the name of a value's type and, if the type has fields, the value.
func (w *writer) what(v reflect.Value) {
	w.text(v.Type().Name())
	w.text(`"`)
	if v.NumField() > 0 {
		w.text(`,"with":`)
		w.object(v)
	}
}

// paint writes the line of a snapshot (picture): first the value of known, then the targets of all pointers and maps.
func (w *writer) paint(at time.Duration) {
	if w.numbers == nil {
		w.numbers = map[unsafe.Pointer]uint64{}
	}
	w.picture = true
	w.text(`{"at":`)
	w.out = strconv.AppendInt(w.out, int64(at), 10)
	w.text(`,"picture":[`)
	w.object(reflect.ValueOf(w.known).Elem())
	for i := 0; i < len(w.todo); i++ {
		w.text(",")
		if v := w.todo[i]; v.Kind() == reflect.Pointer {
			w.value(v.Elem(), false)
		} else {
			w.entries(v)
		}
	}
	w.text("]}\n")
	clear(w.numbers)
	clear(w.todo)
	w.todo, w.picture = w.todo[:0], false
}

func (w *writer) value(v reflect.Value, secret bool) {
	switch t := v.Type(); t {
	case typeRandom: // the state of its PCG consists of two numbers
		pcg := v.Elem().Field(0).Elem().Elem()
		w.text("[")
		w.out = strconv.AppendUint(w.out, pcg.Field(0).Uint(), 10)
		w.text(",")
		w.out = strconv.AppendUint(w.out, pcg.Field(1).Uint(), 10)
		w.text("]")
		return
	case typePrint:
		w.print(v)
		return
	case typeReason:
		w.string(w.hide.reason(semel.Reason(v.String())))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		w.out = strconv.AppendBool(w.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.out = strconv.AppendInt(w.out, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if names := words(v.Type()); names != nil {
			w.string(names[v.Uint()])
		} else {
			w.out = strconv.AppendUint(w.out, v.Uint(), 10)
		}
	case reflect.String:
		if secret && !w.hide.ids {
			w.hash(maphash.String(w.hide.seed, v.String()))
		} else {
			w.string(v.String())
		}
	case reflect.Struct:
		w.object(v)
	case reflect.Array, reflect.Slice:
		w.text("[")
		for i := range v.Len() {
			w.comma(i > 0)
			w.value(v.Index(i), false)
		}
		w.text("]")
	case reflect.Pointer, reflect.Map:
		w.pointer(v)
	default:
		if v.Type() != typeError {
			panic(fmt.Sprintf("semel: recordings do not support the type %s", v.Type()))
		}
		w.out = strconv.AppendBool(w.out, !v.IsNil())
	}
}

func (w *writer) comma(is bool) {
	if is {
		w.text(",")
	}
}

// object writes a struct without fields that have the zero value. Empty slices are also left out, because a machine
// that was restored from a snapshot has nil instead.
func (w *writer) object(v reflect.Value) {
	w.text("{")
	some := false
	for _, f := range parts(v.Type()) {
		if f.inner && !w.picture {
			continue
		}
		x := v.Field(f.index)
		if x.IsZero() || x.Kind() == reflect.Slice && x.Len() == 0 {
			continue
		}
		w.comma(some)
		some = true
		w.text(`"`)
		w.text(f.name)
		w.text(`":`)
		w.value(x, f.secret)
	}
	w.text("}")
}

// pointer writes a pointer or a map. In a snapshot of the state (picture), pointer writes the number of the target. In
// a step, pointer writes:
//
//   - the arrival number, for an item of the machine;
//   - the number and the worker, for a batch;
//   - the index in known.Under, for a Settle action;
//   - the target as an object, in all other cases.
func (w *writer) pointer(v reflect.Value) {
	switch t := v.Type(); {
	case w.picture:
		w.out = strconv.AppendUint(w.out, w.number(v), 10)
	case v.IsNil():
		w.text("null")
	case t == typeItem && (*machine.Item)(v.UnsafePointer()).Arrival() > 0:
		w.out = strconv.AppendUint(w.out, (*machine.Item)(v.UnsafePointer()).Arrival(), 10)
	case t == typeFlight:
		f := (*machine.Flight)(v.UnsafePointer())
		w.text("[")
		w.out = strconv.AppendUint(w.out, f.Number, 10)
		w.text(",")
		w.out = strconv.AppendInt(w.out, int64(f.Worker), 10)
		w.text("]")
	case t == typeSettle:
		w.out = strconv.AppendInt(w.out, int64(slices.Index(w.known.Under, (*machine.Settle)(v.UnsafePointer()))), 10)
	default:
		w.object(v.Elem())
	}
}

// number returns the number of the target of a pointer or a map, or 0 for nil. A new target gets the next free number.
func (w *writer) number(v reflect.Value) uint64 {
	if v.IsNil() {
		return 0
	}
	at := v.UnsafePointer()
	n := w.numbers[at]
	if n == 0 {
		n = uint64(len(w.numbers)) + 1
		w.numbers[at] = n
		if v.Kind() == reflect.Pointer { // the method entries reuses the variable of v for the next entry of a map
			v = reflect.NewAt(v.Type().Elem(), at)
		}
		w.todo = append(w.todo, v)
	}
	return n
}

// entries writes a map as a list of keys and values in turn.
func (w *writer) entries(v reflect.Value) {
	w.text("[")
	v = open(v)
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	some := false
	for all := v.MapRange(); all.Next(); some = true { // key and value are reused, so that no memory is allocated for an entry
		key.SetIterKey(all)
		value.SetIterValue(all)
		w.comma(some)
		w.value(key, false)
		w.text(",")
		w.value(value, false)
	}
	w.text("]")
}

// print writes the version of a fingerprint and a hash of its sum, because the machine only compares sums.
func (w *writer) print(v reflect.Value) {
	p := (*semel.Fingerprint)(unsafe.Pointer(v.UnsafeAddr()))
	w.sum = p.Sum // the hash takes the address, so a local copy would need an allocation
	w.text("[")
	w.out = strconv.AppendUint(w.out, uint64(p.Version), 10)
	if w.sum != ([16]byte{}) {
		w.text(",")
		w.hash(maphash.Bytes(w.hide.seed, w.sum[:]))
	}
	w.text("]")
}

func (w *writer) hash(n uint64) {
	w.text(`"`)
	w.out = strconv.AppendUint(w.out, n, 16)
	w.text(`"`)
}

// string writes a string. A string that is not valid UTF-8 is written in Go's quotes, because JSON would replace the
// invalid bytes, so that different strings could become equal.
func (w *writer) string(s string) {
	if strings.IndexFunc(s, special) < 0 {
		w.text(`"`)
		w.text(s)
		w.text(`"`)
		return
	}
	if s != strings.ToValidUTF8(s, "") {
		s = strconv.QuoteToASCII(s)
	}
	quoted, _ := json.Marshal(s)
	w.out = append(w.out, quoted...)
}

func special(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
