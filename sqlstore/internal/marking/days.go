package marking

import (
	"context"
	"errors"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Judged is the verdict on a mark that met this marker, or none, in a table of days, for
// drivers of their own; the mark has the key under which its marker stands.
func Judged(c sqlform.Crypt, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	a := there.Judged(c, m)
	if a.Aside {
		m.SetAside()
	}
	if a.Unready && m.Asks() {
		return a.Verdict, &database.Error{Doing: "mark", Class: store.ClassDown, Err: errUnready}
	}
	return a.Verdict, nil
}

var errUnready = errors.New("no day is made for tomorrow's markers, so that nobody can tell what is from the future; what makes days has failed for days: run semel reap --once as the owner of the tables, and read what it says")

// setAside writes those marks of ids outside of what is kept that only say what became of
// their messages.
func (l Lists) setAside(ctx context.Context, marks []sqlform.Mark, seen []int, verdicts []store.Verdict) error {
	var outside []int
	for _, i := range seen {
		if verdicts[i].Kind == store.Old && !marks[i].Asks() {
			outside = append(outside, i)
			verdicts[i] = store.Verdict{}
		}
	}
	if len(outside) == 0 {
		return nil
	}
	if err := l.Insert(ctx, l.DB.Days.SQL.Aside, marks, outside, verdicts); err != nil {
		return err
	}
	var met []int // by another of the batch, or of a batch that was faster
	for _, i := range outside {
		if verdicts[i].Kind == store.Fresh {
			marks[i].SetAside()
		} else {
			met = append(met, i)
		}
	}
	if len(met) == 0 {
		return nil
	}
	return l.judge(ctx, marks, nil, met, verdicts)
}
