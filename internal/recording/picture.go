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

// painter writes the whole state of a machine: every field that is reached from it, by
// reflection, so that none can be forgotten. What pointers and maps lead to is numbered
// as it is met, and written in the order of the numbers, since several may lead there.
type painter struct {
	writer
	numbers map[unsafe.Pointer]uint64
	todo    []reflect.Value
}

func (p *painter) paint(k *known) {
	if p.numbers == nil {
		p.numbers = map[unsafe.Pointer]uint64{}
	}
	p.value(reflect.ValueOf(k).Elem(), false)
	for i := 0; i < len(p.todo); i++ {
		p.content(p.todo[i])
	}
	clear(p.numbers)
	clear(p.todo)
	p.todo = p.todo[:0]
}

var (
	typeError  = reflect.TypeFor[error]()
	typeRandom = reflect.TypeFor[*rand.Rand]()
	typePrint  = reflect.TypeFor[semel.Fingerprint]()
	typeReason = reflect.TypeFor[semel.Reason]()
)

// part is a field of a struct, as it is written.
type part struct {
	index  int
	secret bool
}

// unwritten are fields that are of the shell, or empty between two steps.
var unwritten = map[reflect.Type][]string{
	reflect.TypeFor[machine.Item]():    {"Handle"},
	reflect.TypeFor[machine.Machine](): {"out"},
}

// secrets are fields that name a message.
var secrets = map[reflect.Type][]string{
	reflect.TypeFor[machine.Item]():    {"Source", "Identity"},
	reflect.TypeFor[machine.Name]():    {"Source", "Identity"},
	reflect.TypeFor[machine.Version](): {"Stream"},
}

var partsOf sync.Map // of []part by type

func parts(t reflect.Type) []part {
	if all, ok := partsOf.Load(t); ok {
		return all.([]part)
	}
	var all []part
	for i := range t.NumField() {
		if name := t.Field(i).Name; !slices.Contains(unwritten[t], name) {
			all = append(all, part{i, slices.Contains(secrets[t], name)})
		}
	}
	partsOf.Store(t, all)
	return all
}

func (p *painter) value(v reflect.Value, secret bool) {
	switch t := v.Type(); {
	case t == typeRandom:
		p.random(v)
		return
	case t == typePrint:
		p.print(semel.Fingerprint{Version: uint8(v.Field(0).Uint()), Sum: sum(v.Field(1))})
		return
	case t == typeReason:
		p.reason(semel.Reason(v.String()))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		p.uint(bit(v.Bool(), 0))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.uint(v.Uint())
	case reflect.String:
		if secret {
			p.secret(v.String())
		} else {
			p.string(v.String())
		}
	case reflect.Struct:
		for _, f := range parts(v.Type()) {
			p.value(v.Field(f.index), f.secret)
		}
	case reflect.Pointer, reflect.Map:
		p.pointer(v)
	case reflect.Interface:
		if v.Type() != typeError {
			panic("semel: no recording knows what is in a " + v.Type().String())
		}
		p.uint(bit(!v.IsNil(), 0))
	default:
		p.several(v)
	}
}

func (p *painter) several(v reflect.Value) {
	switch v.Kind() {
	case reflect.Array:
		for i := range v.Len() {
			p.value(v.Index(i), false)
		}
	case reflect.Slice:
		p.uint(uint64(v.Len()))
		for i := range v.Len() {
			p.value(v.Index(i), false)
		}
	default:
		panic(fmt.Sprintf("semel: no recording knows a %s", v.Type()))
	}
}

func (p *painter) pointer(v reflect.Value) {
	if v.IsNil() {
		p.uint(0)
		return
	}
	at := v.UnsafePointer()
	n := p.numbers[at]
	if n == 0 {
		n = uint64(len(p.numbers)) + 1
		p.numbers[at] = n
		if v.Kind() == reflect.Pointer { // v may be an entry of a map, and another one next
			v = reflect.NewAt(v.Type().Elem(), at)
		}
		p.todo = append(p.todo, v)
	}
	p.uint(n)
}

// content writes what a pointer, or a map, leads to.
func (p *painter) content(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		p.value(v.Elem(), false)
		return
	}
	p.uint(uint64(v.Len()))
	v = open(v)
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for all := v.MapRange(); all.Next(); { // into the same two: each entry would else be allocated
		key.SetIterKey(all)
		value.SetIterValue(all)
		p.value(key, false)
		p.value(value, false)
	}
}

// random writes where a generator of math/rand/v2 is: two numbers of its PCG.
func (p *painter) random(v reflect.Value) {
	pcg := v.Elem().Field(0).Elem().Elem()
	p.fixed(pcg.Field(0).Uint())
	p.fixed(pcg.Field(1).Uint())
}

func sum(v reflect.Value) (s [16]byte) {
	for i := range s {
		s[i] = byte(v.Index(i).Uint())
	}
	return s
}
