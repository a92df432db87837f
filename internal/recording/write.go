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
	state *externalState
	sum   [16]byte
	begun begun

	// inSnapshot is true while a snapshot of the state is written. Several pointers may have the same target, so a
	// pointer or a map is written as a number, and the targets follow in the order of their numbers. The field numbers
	// contains the numbers of the targets so far. pendingTargets contains the targets that are not written yet.
	inSnapshot     bool
	numbers        map[unsafe.Pointer]uint64
	pendingTargets []reflect.Value
}

// begun is a Begin action together with the entries of its batch.
type begun struct {
	Flight  *machine.Flight
	Entries []machine.Entry
	Serial  bool
}

func (w *writer) writeText(s string) { w.out = append(w.out, s...) }

func (w *writer) writeEvent(e machine.Event, at time.Duration) {
	w.writeText(`{"at":`)
	w.out = strconv.AppendInt(w.out, int64(at), 10)
	w.writeText(`,"event":"`)
	w.writeTypeAndValue(reflect.ValueOf(e))
	w.writeText("}\n")
}

// writeActions writes the line of a step's actions.
func (w *writer) writeActions(all []machine.Action) {
	w.writeText(`{"actions":[`)
	for i, a := range all {
		if i > 0 {
			w.writeText(",")
		}
		w.writeText(`{"action":"`)
		switch a := a.(type) {
		case machine.Begin:
			w.begun = begun{a.Flight, a.Flight.Entries, a.Serial}
			w.writeText(`Begin","with":`)
			w.writeObject(reflect.ValueOf(&w.begun).Elem())
		case *machine.Settle:
			w.writeTypeAndValue(reflect.ValueOf(a).Elem())
		default:
			w.writeTypeAndValue(reflect.ValueOf(a))
		}
		w.writeText("}")
	}
	w.writeText("]}\n")
}

// writeTypeAndValue writes the name of a value's type and, if the type has fields, the value.
func (w *writer) writeTypeAndValue(v reflect.Value) {
	w.writeText(v.Type().Name())
	w.writeText(`"`)
	if v.NumField() > 0 {
		w.writeText(`,"with":`)
		w.writeObject(v)
	}
}

// writeSnapshot writes the line of a snapshot (picture): first the value of externalState, and after it the targets of
// all pointers and maps.
func (w *writer) writeSnapshot(at time.Duration) {
	if w.numbers == nil {
		w.numbers = map[unsafe.Pointer]uint64{}
	}
	w.inSnapshot = true
	w.writeText(`{"at":`)
	w.out = strconv.AppendInt(w.out, int64(at), 10)
	w.writeText(`,"picture":[`)
	w.writeObject(reflect.ValueOf(w.state).Elem())
	for i := 0; i < len(w.pendingTargets); i++ {
		w.writeText(",")
		if v := w.pendingTargets[i]; v.Kind() == reflect.Pointer {
			w.writeValue(v.Elem(), false)
		} else {
			w.writeEntries(v)
		}
	}
	w.writeText("]}\n")
	clear(w.numbers)
	clear(w.pendingTargets)
	w.pendingTargets, w.inSnapshot = w.pendingTargets[:0], false
}

func (w *writer) writeValue(v reflect.Value, secret bool) {
	switch t := v.Type(); t {
	case typeRandom: // the state of its PCG consists of two numbers
		pcg := v.Elem().Field(0).Elem().Elem()
		w.writeText("[")
		w.out = strconv.AppendUint(w.out, pcg.Field(0).Uint(), 10)
		w.writeText(",")
		w.out = strconv.AppendUint(w.out, pcg.Field(1).Uint(), 10)
		w.writeText("]")
		return
	case typePrint:
		w.writeFingerprint(v)
		return
	case typeReason:
		w.writeString(w.hide.reason(semel.Reason(v.String())))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		w.out = strconv.AppendBool(w.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.out = strconv.AppendInt(w.out, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if names := words(v.Type()); names != nil {
			w.writeString(names[v.Uint()])
		} else {
			w.out = strconv.AppendUint(w.out, v.Uint(), 10)
		}
	case reflect.String:
		if secret && !w.hide.ids {
			w.writeHash(maphash.String(w.hide.seed, v.String()))
		} else {
			w.writeString(v.String())
		}
	case reflect.Struct:
		w.writeObject(v)
	case reflect.Array, reflect.Slice:
		w.writeText("[")
		for i := range v.Len() {
			w.writeComma(i > 0)
			w.writeValue(v.Index(i), false)
		}
		w.writeText("]")
	case reflect.Pointer, reflect.Map:
		w.writePointer(v)
	default:
		if v.Type() != typeError {
			panic(fmt.Sprintf("semel: recordings do not support the type %s", v.Type()))
		}
		w.out = strconv.AppendBool(w.out, !v.IsNil())
	}
}

func (w *writer) writeComma(is bool) {
	if is {
		w.writeText(",")
	}
}

// writeObject writes a struct without fields that have the zero value. Empty slices are also left out: a Machine
// that was restored from a snapshot has nil slices instead, and must be written like the original.
func (w *writer) writeObject(v reflect.Value) {
	w.writeText("{")
	some := false
	for _, f := range parts(v.Type()) {
		if f.inner && !w.inSnapshot {
			continue
		}
		x := v.Field(f.index)
		if x.IsZero() || x.Kind() == reflect.Slice && x.Len() == 0 {
			continue
		}
		w.writeComma(some)
		some = true
		w.writeText(`"`)
		w.writeText(f.name)
		w.writeText(`":`)
		w.writeValue(x, f.secret)
	}
	w.writeText("}")
}

// writePointer writes a pointer or a map. In a snapshot of the state (picture), writePointer writes the number of the
// target. In a step, writePointer writes:
//
//   - the arrival number, for an item of the machine;
//   - the number and the worker, for a batch;
//   - the index in externalState.Under, for a Settle action;
//   - the target as an object, in all other cases.
func (w *writer) writePointer(v reflect.Value) {
	switch t := v.Type(); {
	case w.inSnapshot:
		w.out = strconv.AppendUint(w.out, w.writeNumber(v), 10)
	case v.IsNil():
		w.writeText("null")
	case t == typeItem && (*machine.Item)(v.UnsafePointer()).Arrival() > 0:
		w.out = strconv.AppendUint(w.out, (*machine.Item)(v.UnsafePointer()).Arrival(), 10)
	case t == typeFlight:
		f := (*machine.Flight)(v.UnsafePointer())
		w.writeText("[")
		w.out = strconv.AppendUint(w.out, f.Number, 10)
		w.writeText(",")
		w.out = strconv.AppendInt(w.out, int64(f.Worker), 10)
		w.writeText("]")
	case t == typeSettle:
		w.out = strconv.AppendInt(w.out, int64(slices.Index(w.state.Under, (*machine.Settle)(v.UnsafePointer()))), 10)
	default:
		w.writeObject(v.Elem())
	}
}

// writeNumber returns the number of the target of a pointer or a map, or 0 for nil. A new target gets the next free
// number.
func (w *writer) writeNumber(v reflect.Value) uint64 {
	if v.IsNil() {
		return 0
	}
	at := v.UnsafePointer()
	n := w.numbers[at]
	if n == 0 {
		n = uint64(len(w.numbers)) + 1
		w.numbers[at] = n
		if v.Kind() == reflect.Pointer { // writeEntries reuses the variable of v for the next entry of a map
			v = reflect.NewAt(v.Type().Elem(), at)
		}
		w.pendingTargets = append(w.pendingTargets, v)
	}
	return n
}

// writeEntries writes a map as a list of keys and values in turn.
func (w *writer) writeEntries(v reflect.Value) {
	w.writeText("[")
	v = settable(v)
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	some := false
	for all := v.MapRange(); all.Next(); some = true { // key and value are reused, so that no memory is allocated for an entry
		key.SetIterKey(all)
		value.SetIterValue(all)
		w.writeComma(some)
		w.writeValue(key, false)
		w.writeText(",")
		w.writeValue(value, false)
	}
	w.writeText("]")
}

// writeFingerprint writes the version of a fingerprint and a hash of its sum, because the machine only compares sums.
func (w *writer) writeFingerprint(v reflect.Value) {
	p := (*semel.Fingerprint)(unsafe.Pointer(v.UnsafeAddr()))
	w.sum = p.Sum // the hash takes the address, so a local copy would need an allocation
	w.writeText("[")
	w.out = strconv.AppendUint(w.out, uint64(p.Version), 10)
	if w.sum != ([16]byte{}) {
		w.writeText(",")
		w.writeHash(maphash.Bytes(w.hide.seed, w.sum[:]))
	}
	w.writeText("]")
}

func (w *writer) writeHash(n uint64) {
	w.writeText(`"`)
	w.out = strconv.AppendUint(w.out, n, 16)
	w.writeText(`"`)
}

// writeString writes a string. A string that is not valid UTF-8 is written in Go's quotes, because JSON would replace
// the invalid bytes, so that different strings could become equal.
func (w *writer) writeString(s string) {
	if strings.IndexFunc(s, special) < 0 {
		w.writeText(`"`)
		w.writeText(s)
		w.writeText(`"`)
		return
	}
	if s != strings.ToValidUTF8(s, "") {
		s = strconv.QuoteToASCII(s)
	}
	quoted, _ := json.Marshal(s)
	w.out = append(w.out, quoted...)
}

func special(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
