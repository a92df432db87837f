package httpkey

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"testing"
)

func TestAnAnswerIsReadAsItWasKept(t *testing.T) {
	for name, a := range map[string]*answer{
		"with headers and a body": {201, http.Header{"Location": {"/orders/1"}, "Link": {"<a>", "<b>"}}, []byte("order")},
		"with nothing":            {204, http.Header{}, []byte{}},
		"with bytes":              {400, http.Header{"Etag": {""}}, []byte{0, 255, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := a.encode(KeptHeaders())
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeAnswer(b)
			if err != nil || got.status != a.status || !reflect.DeepEqual(got.header, a.header) || !bytes.Equal(got.body, a.body) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestP1AnAnswerOfANewerReleaseIsDistinguishedFromADamagedOne(t *testing.T) {
	if _, err := decodeAnswer([]byte{form + 1, 7, 7}); !errors.Is(err, errNewer) {
		t.Errorf("a newer one: %v", err)
	}
	b, _ := (&answer{201, http.Header{"Location": {"/orders/1"}}, nil}).encode(KeptHeaders())
	for n := range len(b) {
		if _, err := decodeAnswer(b[:n]); !errors.Is(err, errCut) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func FuzzAnswersAreReadWithoutAPanic(f *testing.F) {
	b, _ := (&answer{201, http.Header{"Location": {"/orders/1"}}, []byte("order")}).encode(KeptHeaders())
	f.Add(b)
	f.Add([]byte{form, 0xc9, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAnswer(b)
		if (a == nil) != (err != nil) {
			t.Errorf("%v, %v", a, err)
		}
	})
}
