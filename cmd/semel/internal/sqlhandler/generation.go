package sqlhandler

import (
	"slices"
	"strconv"
)

// Generation is the name of the parameter that has the generation in which the consumer
// works, where nothing else is bound to it.
const Generation = "generation"

// bindGeneration binds the generation's name behind those of all parameters.
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
