package httphandler

import (
	"fmt"

	"github.com/semel-go/semel"
)

// EffectsType is the media type of an answer that says which effects Semel is to apply.
const EffectsType = "application/vnd.semel.effects+json"

// fitting says why an answer that is done does not fit the policy: waiting cannot mend
// that.
func (h *Handler) fitting(a answer) error {
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
	return &semel.HandlerError{Decision: semel.DecidePermanent, Reason: semel.ReasonBadEffects,
		Err: fmt.Errorf("%s answered %d %s", h.host, a.status, why)}
}
