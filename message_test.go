package semel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestPrivateFieldsAreNotInAMessagesJSON(t *testing.T) {
	text, err := json.Marshal(semel.NewMessage(semel.Key{ID: "1"}, []byte(`{}`)))
	if err != nil || strings.Contains(string(text), "Strict") || !strings.Contains(string(text), `"Attempt":1`) {
		t.Errorf("%v %s", err, text)
	}
}
