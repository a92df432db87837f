package message

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
)

func TestAnEventThatIsHandedOnTwiceIsOpenedOnce(t *testing.T) {
	kind := semel.Header{Name: "content-type", Value: []byte("application/cloudevents+json")}
	m := &semel.Message{Headers: semel.Headers{kind}, Body: []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}`)}
	first := source.Delivery{Message: m, Undecoded: &event{}}
	second := first // a source that wraps this source may make a copy
	first.Decode(nil)
	second.Decode(nil)
	if second.Refused != reasonname.None || string(m.Body) != `{"a":1}` {
		t.Errorf("refused %q (%s), body %q", second.Refused, second.Detail, m.Body)
	}
}
