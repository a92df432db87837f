package recording

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// reader creates values of the machine's types from the JSON that a writer has written. If the JSON does not
// fit the types, reader panics, and Replay turns the panic into an error.
type reader struct {
	state      *externalState
	inSnapshot bool            // a snapshot of the state is being read
	met        []reflect.Value // targets of the snapshot's pointers and maps, by number
}

// events contains the types of a machine's events, by name.
var events = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, e := range []machine.Event{machine.Given{}, machine.Revoking{}, machine.Lost{}, machine.Fetched{}, machine.Claimed{}, machine.Due{}, machine.Marked{},
		machine.Ran{}, machine.Stuck{}, machine.Ended{}, machine.Settled{}, machine.Timer{}, machine.Stop{}} {
		all[reflect.TypeOf(e).Name()] = reflect.TypeOf(e)
	}
	return all
}()

func (r *reader) readEvent(name string, with any) machine.Event {
	t := events[name]
	if t == nil {
		panic(fmt.Errorf("%w: it has an event %q", ErrOtherShape, name))
	}
	v := reflect.New(t).Elem()
	if with != nil {
		r.readValue(v, with)
	}
	return v.Interface().(machine.Event)
}

// restore reads a snapshot (picture) and returns the state of the machine that it describes.
func (r *reader) restore(picture []any) *externalState {
	r.inSnapshot = true
	k := &externalState{}
	r.readValue(reflect.ValueOf(k).Elem(), picture[0])
	for i := 0; i < len(r.met); i++ {
		r.readTarget(r.met[i], picture[i+1])
	}
	r.state, r.inSnapshot = k, false
	_ = k.Machine.Load() // Load panics if the snapshot is damaged
	return k
}

func (r *reader) readValue(v reflect.Value, from any) {
	switch v.Type() {
	case typeRandom:
		r.random(v, from.([]any))
		return
	case typePrint:
		v.Set(reflect.ValueOf(print(from.([]any))))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(from.(bool))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := from.(json.Number).Int64()
		must(err)
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if names := words(v.Type()); names != nil {
			i := slices.Index(names[:], from.(string))
			if i < 0 {
				panic(fmt.Errorf("%w: it has the word %q for a %s", ErrOtherShape, from, v.Type()))
			}
			v.SetUint(uint64(i))
		} else {
			v.SetUint(number(from))
		}
	case reflect.String:
		v.SetString(from.(string))
	case reflect.Struct:
		r.readObject(v, from.(map[string]any))
	case reflect.Array, reflect.Slice:
		all := from.([]any)
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
		}
		for i, x := range all {
			r.readValue(settable(v.Index(i)), x)
		}
	case reflect.Pointer, reflect.Map:
		r.readPointer(v, from)
	default:
		if from.(bool) {
			v.Set(reflect.ValueOf(errUnrecorded))
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func number(from any) uint64 {
	n, err := strconv.ParseUint(from.(json.Number).String(), 10, 64)
	must(err)
	return n
}

// readObject reads the fields of a struct in the order in which writeObject wrote them, because the targets of pointers
// are numbered in that order.
func (r *reader) readObject(v reflect.Value, from map[string]any) {
	met := 0
	for _, f := range parts(v.Type()) {
		if x, there := from[f.name]; there {
			r.readValue(settable(v.Field(f.index)), x)
			met++
		}
	}
	if met < len(from) {
		panic(fmt.Errorf("%w: a %s of this build lacks a part", ErrOtherShape, v.Type()))
	}
}

func (r *reader) readPointer(v reflect.Value, from any) {
	switch t := v.Type(); {
	case r.inSnapshot:
		n := int(number(from))
		if n == len(r.met)+1 {
			r.met = append(r.met, newEmpty(t))
		}
		if n > 0 {
			v.Set(r.met[n-1])
		}
	case from == nil:
	case t == typeFlight:
		pair := from.([]any)
		v.Set(reflect.ValueOf(r.findFlight(number(pair[0]), int(number(pair[1])))))
	case t == typeSettle:
		v.Set(reflect.ValueOf(r.state.Under[number(from)]))
	default:
		if arrival, is := from.(json.Number); is {
			v.Set(reflect.ValueOf(r.findItem(number(arrival))))
			return
		}
		v.Set(reflect.New(t.Elem()))
		r.readValue(v.Elem(), from)
	}
}

// findFlight returns the worker's batch with the given number or, if that batch has ended, an empty batch.
func (r *reader) findFlight(number uint64, worker int) *machine.Flight {
	if f := r.state.Flights[worker]; f != nil && f.Number == number {
		return f
	}
	return &machine.Flight{Number: number, Worker: worker}
}

// findItem returns an item of a current batch.
func (r *reader) findItem(arrival uint64) *machine.Item {
	for _, f := range r.state.Flights {
		for i := 0; f != nil && i < len(f.Entries); i++ {
			if it := f.Entries[i].Item; it.Arrival() == arrival {
				return it
			}
		}
	}
	return nil
}

// newEmpty returns a new pointer or map of a type, whose content is read later.
func newEmpty(t reflect.Type) reflect.Value {
	if t.Kind() == reflect.Map {
		return reflect.MakeMap(t)
	}
	return reflect.New(t.Elem())
}

// readTarget reads the target of a pointer, or the entries of a map.
func (r *reader) readTarget(v reflect.Value, from any) {
	if v.Kind() == reflect.Pointer {
		r.readValue(v.Elem(), from)
		return
	}
	for pair := range slices.Chunk(from.([]any), 2) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		r.readValue(key, pair[0])
		r.readValue(value, pair[1])
		v.SetMapIndex(key, value)
	}
}

func (r *reader) random(v reflect.Value, from []any) {
	state := []byte("pcg:")
	for _, x := range from {
		state = binary.BigEndian.AppendUint64(state, number(x))
	}
	pcg := &rand.PCG{}
	must(pcg.UnmarshalBinary(state))
	v.Set(reflect.ValueOf(rand.New(pcg)))
}

// print reads a fingerprint. The Sum of the result is the recorded hash of the original sum.
func print(from []any) (p semel.Fingerprint) {
	p.Version = uint8(number(from[0]))
	if len(from) > 1 {
		sum, err := strconv.ParseUint(from[1].(string), 16, 64)
		must(err)
		binary.LittleEndian.PutUint64(p.Sum[:], sum)
	}
	return p
}
