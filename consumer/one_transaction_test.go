package consumer_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestOneTransactionHoldsMarkerAndEffect(t *testing.T) {
	t.Run("trap_107_a_handler_gets_the_transaction_of_the_store_that_marks", func(t *testing.T) {
		// Types that do not fit together do not compile: the transaction type of the handler must be that of
		// the store, and no parameter could name a second store.
		type tx = *memstore.Tx
		var fits func(store.TxStore[tx], func(context.Context, tx, *semel.Message) error, consumer.Config, ...faults.Plan) (*consumer.Consumer[tx], error) = consumer.New[tx]
		var all func(store.TxStore[tx], func(context.Context, tx, []*semel.Message) error, consumer.Config, ...faults.Plan) (*consumer.Consumer[tx], error) = consumer.NewBatch[tx]
		for _, made := range []reflect.Type{reflect.TypeOf(fits), reflect.TypeOf(all), reflect.TypeFor[consumer.Config]()} {
			stores := 0
			for _, in := range parts(made) {
				if in.Implements(reflect.TypeFor[store.TxStore[tx]]()) {
					stores++
				}
			}
			if made.Kind() == reflect.Func && stores != 1 || made.Kind() == reflect.Struct && stores != 0 {
				t.Errorf("%v names %d stores", made, stores)
			}
		}
	})
}

// parts returns the parameters of a function or the fields of a struct.
func parts(of reflect.Type) (all []reflect.Type) {
	if of.Kind() == reflect.Func {
		for i := range of.NumIn() {
			all = append(all, of.In(i))
		}
		return all
	}
	for i := range of.NumField() {
		all = append(all, of.Field(i).Type)
	}
	return all
}
