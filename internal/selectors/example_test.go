package selectors_test

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/selectors"
)

func ExampleParse() {
	amount, err := selectors.Parse("body:/amount")
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := amount.Value(&semel.Message{Body: []byte(`{"amount": 9007199254740993.10}`)})
	fmt.Println(v.Number(), v.Decimal(), err)

	_, err = selectors.Parse("heder:ce-id")
	fmt.Println(err)
	// Output:
	// 9007199254740993.10 9007199254740993.1 <nil>
	// unknown selector "heder:ce-id"; did you mean "header"? use one of header:NAME, body:/json/pointer, body:, key, topic, type, subject, time, id, source, const:TEXT, partition, offset
}
