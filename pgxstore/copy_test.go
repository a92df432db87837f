package pgxstore

import "testing"

func TestACopyIsRecognised(t *testing.T) {
	for sql, want := range map[string]bool{
		"copy t from stdin": true, " \n COPY t (a) from stdin": true, "-- so\ncopy\tt from stdin": true, "/* so */ copy t to stdout": true, `copy"t" from stdin`: true,
		"copying()": false, "insert into copy values (1)": false, "copy": false, "": false, "-- copy t from stdin": false, "select 'copy t from stdin'": false,
	} {
		if copies(sql) != want {
			t.Errorf("%q: %t", sql, !want)
		}
	}
}
