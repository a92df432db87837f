package consumer

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/identity"
)

// fitted is an identity that a store must be able to hold.
type fitted struct {
	identity.Identity
	store contract.IdentityFitter
}

// Identify implements identity.Identity.
func (f fitted) Identify(m *semel.Message) (source, id string, err error) {
	if source, id, err = f.Identity.Identify(m); err == nil && id != "" {
		id, err = f.store.FitIdentity(source, id)
	}
	return source, id, err
}
