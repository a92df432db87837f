package sqlhandler

import (
	"slices"
	"strconv"
)

// Generation is the name of the built-in parameter with the consumer's generation. A parameter of the policy
// with the same name takes precedence over the built-in parameter.
const Generation = "generation"

// bindGeneration adds the generation as the last parameter of the handler.
func (h *Handler) bindGeneration(number *int64) {
	if number == nil || slices.Contains(h.names, Generation) {
		return
	}
	h.names = append(h.names, Generation)
	h.generation = *number
	if h.sendsText {
		h.generation = strconv.FormatInt(*number, 10)
	}
}
