package recording

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

var (
	typeError  = reflect.TypeFor[error]()
	typeRandom = reflect.TypeFor[*rand.Rand]()
	typePrint  = reflect.TypeFor[semel.Fingerprint]()
	typeReason = reflect.TypeFor[semel.Reason]()
	typeItem   = reflect.TypeFor[*machine.Item]()
	typeFlight = reflect.TypeFor[*machine.Flight]()
	typeSettle = reflect.TypeFor[*machine.Settle]()
)

// part describes a struct field that is written to recordings.
type part struct {
	index  int
	name   string
	secret bool // the field identifies a message
	// inner is true if the field is not exported. Only snapshots of the machine's state (pictures) contain unexported
	// fields.
	inner bool
}

// unwritten contains fields that are not written, because they belong to the engine, or are empty between
// steps.
var unwritten = map[reflect.Type][]string{
	reflect.TypeFor[machine.Item]():    {"Handle"},
	reflect.TypeFor[machine.Machine](): {"out"},
}

// secrets contains the fields that identify a message.
var secrets = map[reflect.Type][]string{
	reflect.TypeFor[machine.Item]():    {"Source", "Identity"},
	reflect.TypeFor[machine.Name]():    {"Source", "Identity"},
	reflect.TypeFor[machine.Version](): {"Stream"},
}

var partsOf, wordsOf sync.Map // of []part and of *[256]string, by type

func parts(t reflect.Type) []part {
	if all, ok := partsOf.Load(t); ok {
		return all.([]part)
	}
	var all []part
	for i := range t.NumField() {
		f := t.Field(i)
		if !slices.Contains(unwritten[t], f.Name) {
			all = append(all, part{i, f.Name, slices.Contains(secrets[t], f.Name), !f.IsExported()})
		}
	}
	partsOf.Store(t, all)
	return all
}

// words returns the names of a type's values, or nil if the values of the type have no names.
func words(t reflect.Type) *[256]string {
	if all, ok := wordsOf.Load(t); ok {
		return all.(*[256]string)
	}
	var all *[256]string
	if t.Kind() == reflect.Uint8 && t.Implements(reflect.TypeFor[fmt.Stringer]()) {
		all = new([256]string)
		for n := range all {
			v := reflect.New(t).Elem()
			v.SetUint(uint64(n))
			all[n] = v.Interface().(fmt.Stringer).String()
		}
	}
	wordsOf.Store(t, all)
	return all
}

// settable returns the field v as a value that can be set, even if the field is not exported.
func settable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
