package demo

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is the result of a demo.
type Report struct {
	Seed uint64 `json:"seed"`
	// Payments is the number of different payments. Copies is the number of payments that a producer sent
	// twice.
	Payments int `json:"payments"`
	Copies   int `json:"copies"`
	// Crashes are the planned crashes, which are the same for all consumers.
	Crashes   []Crash   `json:"crashes"`
	Consumers []Figures `json:"consumers"`
}

// Figures are the results of one consumer.
type Figures struct {
	Name string `json:"name"`
	// The broker counts Deliveries, Redeliveries and Crashes. Deliveries include Redeliveries.
	Deliveries   int `json:"deliveries"`
	Redeliveries int `json:"redeliveries"`
	Crashes      int `json:"crashes"`
	// The numbers from Expected on are read from the consumer's database. Applied is equal to Expected - Lost +
	// Doubled.
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	Lost     int `json:"lost"`
	Doubled  int `json:"doubled"`
	// MoneyOff is the sum of the absolute differences between actual and expected balances.
	MoneyOff int64 `json:"money_off"`
}

// Write prints a table with one column per consumer. The table fits a narrow terminal.
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

// Check returns an error that lists the expected results which the report does not show.
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
