package planted

import "testing"

const original = `package p

func (s *set) each(_ int, names ...string) {
	s.count++
}

func sum(int) (total int) {
	total = 1
	return total
}
`

const planted = `package p

func (s *set) each(planted0_0 int, names ...string) { if plantedFault == 1 { s.eachPlanted1(planted0_0, names...); return };
	s.count++
}

func sum(planted0 int) (total int) { if plantedFault == 2 { return sumPlanted2(planted0) }; if plantedFault == 3 { return sumPlanted3(planted0) };
	total = 1
	return total
}

//line counts twice:1
func (s *set) eachPlanted1(_ int, names ...string) {
	s.count += 2
}

//line begins at 2:1
func sumPlanted2(int) (total int) {
	total = 2
	return total
}

//line returns nothing:1
func sumPlanted3(int) (total int) {
	total = 1
	return 0
}
`

func TestAFileHasEveryFaultAndNoneUntilItIsSwitchedOn(t *testing.T) {
	s, err := newSchema(original)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []Fault{
		{Name: "counts twice", Old: "s.count++", New: "s.count += 2"},
		{Name: "begins at 2", Old: "total = 1", New: "total = 2"},
		{Name: "returns nothing", Old: "return total", New: "return 0"},
	} {
		if err := s.add(f, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if s.String() != planted {
		t.Errorf("it is\n%s\nwant\n%s", s, planted)
	}
}

func TestAFaultIsInsideOneFunction(t *testing.T) {
	s, err := newSchema(original)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]Fault{
		"another head":  {Old: "sum(int)", New: "sum(int64)"},
		"two functions": {Old: "s.count++\n}\n\nfunc sum(int) (total int) {\n\ttotal = 1", New: "s.count--\n}\n\nfunc sum(int) (total int) {\n\ttotal = 2"},
		"beside them":   {Old: "package p\n", New: "package p\n\nvar further int\n"},
		"nothing":       {Old: "total = 1", New: "total = 1"},
		"no Go":         {Old: "total = 1", New: "total = ("},
	} {
		t.Run(name, func(t *testing.T) {
			if s.add(f, 1) == nil {
				t.Errorf("it was planted: %s", s)
			}
		})
	}
}
