package httphandler

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

// EffectsType is the media type of a response with effects that Semel applies.
const EffectsType = "application/vnd.semel.effects+json"

// checkResponse returns a permanent error if a 2xx response does not match the policy. A retry would not help,
// because the endpoint would probably respond in the same way.
func (h *Handler) checkResponse(a answer) error {
	why := ""
	switch {
	case a.effects && !h.config.Effects:
		why = "with effects, and the policy declares none (handler.http.effects); nothing was applied"
	case a.effects && a.length > mostRead:
		why = "with effects of more than 1 MiB; none was applied"
	case !a.effects && h.config.Effects && a.length > 0:
		why = fmt.Sprintf("with a body that is not of the type %s; nothing was applied. Without effects the body must be empty", EffectsType)
	default:
		return nil
	}
	return &semel.HandlerError{Decision: semel.DecidePermanent, Reason: reasonname.BadEffects,
		Err: fmt.Errorf("%s answered %d %s", h.host, a.status, why)}
}
