package demo

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is what came of a demonstration.
type Report struct {
	Seed uint64 `json:"seed"`
	// Payments were sent, Copies of them a second time by their producer.
	Payments int `json:"payments"`
	Copies   int `json:"copies"`
	// Crashes is the schedule that all consumers had.
	Crashes   []Crash   `json:"crashes"`
	Consumers []Figures `json:"consumers"`
}

// Figures are one consumer's.
type Figures struct {
	Name string `json:"name"`
	// Deliveries, Redeliveries among them, and Crashes are the broker's count.
	Deliveries   int `json:"deliveries"`
	Redeliveries int `json:"redeliveries"`
	Crashes      int `json:"crashes"`
	// What follows is read from the consumer's database. Applied is
	// Expected - Lost + Doubled.
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	Lost     int `json:"lost"`
	Doubled  int `json:"doubled"`
	// MoneyOff adds up by how much each balance is wrong.
	MoneyOff int64 `json:"money_off"`
}

// Write prints the table, a column a consumer: so it fits a narrow terminal.
func (r Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(title string, cell func(Figures) any) {
		fmt.Fprintf(table, "%s\t", title)
		for _, f := range r.Consumers {
			fmt.Fprintf(table, "%v\t", cell(f))
		}
		fmt.Fprintln(table)
	}
	row("", func(f Figures) any { return f.Name })
	row("deliveries", func(f Figures) any { return f.Deliveries })
	row("redelivered", func(f Figures) any { return f.Redeliveries })
	row("crashes", func(f Figures) any { return f.Crashes })
	row("expected", func(f Figures) any { return f.Expected })
	row("applied", func(f Figures) any { return f.Applied })
	row("lost", func(f Figures) any { return f.Lost })
	row("doubled", func(f Figures) any { return f.Doubled })
	row("money off by", func(f Figures) any { return f.MoneyOff })
	return table.Flush()
}

// Check returns what the demonstration should have shown and did not.
func (r Report) Check() error {
	var wrong []error
	must := func(holds bool, f Figures, what string) {
		if !holds {
			wrong = append(wrong, fmt.Errorf("%s %s with seed %d: lost %d, doubled %d, money off by %d, crashes %d of %d",
				f.Name, what, r.Seed, f.Lost, f.Doubled, f.MoneyOff, f.Crashes, len(r.Crashes)))
		}
	}
	for _, f := range r.Consumers {
		must(f.Crashes == len(r.Crashes), f, "did not crash as planned")
		switch f.Name {
		case SettleFirst:
			must(f.Lost > 0 && f.MoneyOff != 0, f, "lost nothing")
		case SettleLast:
			must(f.Doubled > 0 && f.MoneyOff != 0, f, "doubled nothing")
		case Semel:
			must(f.Lost == 0 && f.Doubled == 0 && f.MoneyOff == 0, f, "did not apply each payment once")
		}
	}
	return errors.Join(wrong...)
}
