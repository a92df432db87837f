package consumer

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
)

// fit is an identity that was found as the store can hold it. It is no part of
// finding, which reads the body in the engine's room: a type of our own around
// the user's identity would have each body parsed a second time.
func (c *settings) fit(source, id string) (_, _ string, err error) {
	if c.limits.FitIdentity == nil || id == "" {
		return source, id, nil
	}
	spelled, err := c.spell(source, id)
	if err == nil && spelled == id {
		return source, id, nil
	}
	return held(source, spelled, err)
}

// spell asks the store.
func (c *settings) spell(source, id string) (spelled string, err error) {
	defer func() {
		if value := recover(); value != nil {
			report.LogPanic(c.Logger, c.Name, "the store's FitIdentity", value)
			err = fmt.Errorf("the store's FitIdentity panicked: %s", legible.Panic(value))
		}
	}()
	return c.limits.FitIdentity(source, id)
}

// held holds what the store answered to the rules of identities, its error, too.
func held(source, id string, err error) (_, _ string, _ error) {
	return identity.Find(identity.Func(func(*semel.Message) (string, string, error) { return source, id, err }), nil)
}
