package consumer

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// neverProcessed says why the row of a message that no handler may get is set aside
// again, whoever had it retried, and what to do; nil if a handler may get it. A
// message without usable identity may be had by a consumer that needs none.
func (c *settings) neverProcessed(r *store.StoredRow) error {
	if !r.Surrogate {
		return nil
	}
	switch r.Reason {
	case semel.ReasonFiltered:
		return errors.New("it is of a message that Config.Filter leaves to other consumers and is never processed; discard it, or change Filter and let the producer send it again")
	case semel.ReasonTooLarge:
		return errors.New("only the beginning of its message was kept, and it is never processed; discard it, and let the producer send a smaller one, or raise Config.MaxBody or the source's limit and let it be sent again")
	case semel.ReasonMalformed:
		return errors.New("its message could not be read and is never processed; discard it, and let the producer send a good one")
	}
	if c.Identity == nil {
		return nil
	}
	return errors.New("its message has no usable identity and is never processed; discard it, and let the producer send it again")
}
