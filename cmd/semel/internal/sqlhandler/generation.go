package sqlhandler

import (
	"slices"
	"strconv"
)

// Generation is the name of the parameter with the consumer's generation, unless the policy binds
// another value to the name.
const Generation = "generation"

// bindGeneration binds the generation after all parameters.
func (h *Handler) bindGeneration(number *int64) {
	if number == nil || slices.Contains(h.names, Generation) {
		return
	}
	h.names = append(h.names, Generation)
	h.generation = *number
	if h.texts {
		h.generation = strconv.FormatInt(*number, 10)
	}
}
