package chance

import "slices"

// shrinker makes a list of decisions shorter.
type shrinker struct {
	best   []uint32
	tries  int
	breaks func(list []uint32) (used []uint32, cost int, does bool)
}

// Shrink makes a failing list of decisions shorter and its numbers smaller. Shrink makes at most tries runs. The
// parameter breaks is a function that makes a run with a list, and returns the decisions that the run used, the cost of
// the run in further tries, and whether the run breaks the same law as the original list.
func Shrink(list []uint32, tries int, breaks func(list []uint32) (used []uint32, cost int, does bool)) []uint32 {
	s := &shrinker{best: list, tries: tries, breaks: breaks}
	s.shrink()
	return s.best
}

// try makes a run with a list, and continues with that list if the run still breaks the law.
func (s *shrinker) try(list []uint32) bool {
	if s.tries--; s.tries < 0 {
		return false
	}
	used, cost, does := s.breaks(list)
	s.tries -= cost
	if does {
		s.best = trimZeros(used)
	}
	return does
}

// trimZeros removes the zeros at the end of a list, because Choices returns zeros after the end of a list.
func trimZeros(list []uint32) []uint32 {
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return list
}

func (s *shrinker) shrink() {
	for before := -1; s.tries > 0 && before != weight(s.best); {
		before = weight(s.best)
		for size := len(s.best) / 2; size > 0; size /= 2 {
			s.cut(size)
			s.zero(size)
		}
		s.lower()
	}
}

// weight is a measure of a list that Shrink minimizes.
func weight(list []uint32) int {
	sum := 16 * len(list)
	for _, v := range list {
		sum += int(v)
	}
	return sum
}

// cut tries to remove each part of the list that has the given size.
func (s *shrinker) cut(size int) {
	for at := len(s.best) - size; at >= 0 && s.tries > 0; at -= size {
		if at+size > len(s.best) {
			continue
		}
		s.try(slices.Concat(s.best[:at], s.best[at+size:]))
	}
}

// zero tries to set each part of the given size to zeros, which mean harmless decisions.
func (s *shrinker) zero(size int) {
	for at := len(s.best) - size; at >= 0 && s.tries > 0; at -= size {
		if at+size > len(s.best) || !slices.ContainsFunc(s.best[at:at+size], func(v uint32) bool { return v != 0 }) {
			continue
		}
		list := slices.Clone(s.best)
		clear(list[at : at+size])
		s.try(list)
	}
}

// lower tries to make single numbers smaller.
func (s *shrinker) lower() {
	for at := 0; at < len(s.best) && s.tries > 0; at++ {
		for at < len(s.best) && s.best[at] > 0 {
			list := slices.Clone(s.best)
			list[at] /= 2
			if !s.try(list) {
				break
			}
		}
	}
}
