package leasedkey_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// deafToNotes is a store that rejects notes (stored requests).
type deafToNotes struct{ *memstore.Keys }

func (deafToNotes) SaveRequest(context.Context, semel.Key, store.Token, []byte) error {
	return errNoNote
}

var errNoNote = errors.New("the store rejects the note")

func TestF2ARequestIsNotedBeforeItsCall(t *testing.T) {
	noted := leasedkey.Request{Source: "shop", ID: "a", Note: []byte("what it is about")}
	left := func(t *testing.T, s *memstore.Keys) []admin.AbandonedKey {
		all, err := s.AbandonedKeys(t.Context(), admin.AbandonedKeysQuery{Consumer: "billing", Most: 10})
		if err != nil {
			t.Fatal(err)
		}
		return all.Keys
	}
	t.Run("F2_and_is_found_when_its_caller_has_died", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.NewKeys()
			keys, _ := leasedkey.New(st, config())
			_, _ = keys.Do(t.Context(), noted, func(context.Context, leasedkey.Attempt) ([]byte, error) {
				pass(2 * time.Second)
				if all := left(t, st); len(all) > 0 {
					t.Errorf("during the call, the abandoned keys are %+v", all)
				}
				return nil, errors.New("no answer came")
			})
			pass(2 * time.Minute)
			if all := left(t, st); len(all) != 1 || string(all[0].Note) != "what it is about" {
				t.Errorf("%+v is left", all)
			}
		})
	})
	t.Run("F2_nobody_is_called_for_what_is_not_noted", func(t *testing.T) {
		for _, st := range []keystore.Store{deafToNotes{memstore.NewKeys()}, struct{ keystore.Store }{memstore.NewKeys()}} {
			keys, _ := leasedkey.New(st, config())
			called := 0
			call := func(context.Context, leasedkey.Attempt) ([]byte, error) {
				called++
				return nil, nil
			}
			a, err := keys.Do(t.Context(), noted, call)
			if called != 0 || a.Called || !errors.Is(err, errNoNote) && !errors.Is(err, semel.ErrUnsupported) {
				t.Errorf("Do returned %+v, %v after %d calls", a, err, called)
			}
			if a, err := keys.Do(t.Context(), leasedkey.Request{Source: "shop", ID: "a"}, call); !a.Called || err != nil {
				t.Errorf("the key cannot be claimed: %+v, %v", a, err)
			}
		}
	})
}
