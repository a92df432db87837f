package recording

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"unsafe"

	"github.com/semel-go/semel/internal/machine"
)

// restorer reads what a painter wrote, into a machine that goes on from there.
type restorer struct {
	reader
	met []reflect.Value // by number
}

var errPicture = errors.New("the recording is damaged: its picture of the machine cannot be read")

func (r *restorer) restore() *known {
	k := &known{}
	r.into(reflect.ValueOf(k).Elem())
	for i := 0; i < len(r.met) && r.err == nil; i++ {
		r.content(r.met[i])
	}
	if r.err == nil && k.Machine == nil {
		r.fail(errPicture)
	}
	return k
}

// open is a field that may be set, although it is another package's.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

func (r *restorer) into(v reflect.Value) {
	switch v.Type() {
	case typeRandom:
		r.random(v)
		return
	case typePrint:
		v.Set(reflect.ValueOf(r.print()))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.uint() == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.uint())
	case reflect.String:
		v.SetString(r.string())
	case reflect.Struct:
		for _, f := range parts(v.Type()) {
			r.into(open(v.Field(f.index)))
		}
	case reflect.Pointer, reflect.Map:
		r.pointer(v)
	case reflect.Interface:
		if err := wasError(r.uint() == 1); err != nil {
			v.Set(reflect.ValueOf(err))
		}
	default:
		r.several(v)
	}
}

func (r *restorer) several(v reflect.Value) {
	switch v.Kind() {
	case reflect.Array:
		for i := range v.Len() {
			r.into(open(v.Index(i)))
		}
	case reflect.Slice:
		n := r.count()
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.into(open(v.Index(i)))
		}
	}
}

func (r *restorer) pointer(v reflect.Value) {
	n := r.uint()
	switch {
	case n == 0:
	case n <= uint64(len(r.met)):
		v.Set(r.met[n-1])
	case n == uint64(len(r.met))+1:
		r.met = append(r.met, empty(v.Type()))
		v.Set(r.met[n-1])
	default:
		r.fail(errPicture)
	}
}

// empty is what a pointer, or a map, of a type leads to, before it is read.
func empty(t reflect.Type) reflect.Value {
	if t.Kind() == reflect.Map {
		return reflect.MakeMap(t)
	}
	return reflect.New(t.Elem())
}

func (r *restorer) content(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		r.into(v.Elem())
		return
	}
	for range r.count() {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		r.into(key)
		r.into(value)
		v.SetMapIndex(key, value)
	}
}

func (r *restorer) random(v reflect.Value) {
	state := []byte("pcg:")
	state = binary.BigEndian.AppendUint64(state, r.fixed())
	state = binary.BigEndian.AppendUint64(state, r.fixed())
	pcg := &rand.PCG{}
	if err := pcg.UnmarshalBinary(state); err != nil {
		r.fail(err)
	}
	v.Set(reflect.ValueOf(rand.New(pcg)))
}

// shape says how what a picture is of is built in this build, down to each field. Only a
// build of the same shape reads it.
func shape() string {
	var text []byte
	seen := map[reflect.Type]bool{}
	var tell func(t reflect.Type)
	tell = func(t reflect.Type) {
		text = append(append(text, t.String()...), ' ')
		if seen[t] || t == typeRandom || t == typeError {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Struct:
			for _, f := range parts(t) {
				text = append(append(text, t.Field(f.index).Name...), ' ')
				tell(t.Field(f.index).Type)
			}
		case reflect.Map:
			tell(t.Key())
			tell(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array:
			tell(t.Elem())
		}
	}
	tell(reflect.TypeFor[known]())
	tell(reflect.TypeFor[events]())
	return string(text)
}

// events are all that a machine can be told, for the shape.
type events struct {
	machine.Given
	machine.Fetched
	machine.Marked
	machine.Ran
	machine.Stuck
	machine.Ended
	machine.Settled
	machine.Claimed
}
