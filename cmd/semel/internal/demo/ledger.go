package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// audit compares the entries in the database with the payments.
func audit(ctx context.Context, path string, deliveries []payment) (f Figures, err error) {
	db, err := openDatabase(path)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	booked, err := entries(ctx, db)
	if err != nil {
		return f, err
	}
	balances, err := balances(ctx, db)
	if err != nil {
		return f, err
	}
	return compareBookings(deliveries, booked, balances)
}

// compareBookings compares bookings and balances with the payments. If the database has entries of other payments,
// compareBookings returns an error, because the figures would be wrong.
func compareBookings(deliveries []payment, booked map[payment]int, balances map[string]int64) (f Figures, err error) {
	expected := map[string]int64{}
	due := map[payment]bool{}
	for _, p := range deliveries {
		if !due[p] {
			due[p] = true
			expected[p.Account] += p.Amount
		}
	}
	entered := map[string]int64{}
	for p, n := range booked {
		if !due[p] {
			return f, fmt.Errorf("the database has an entry that was never sent: payment %s of %s", p.ID, p.Producer)
		}
		f.Applied += n
		f.Doubled += n - 1
		entered[p.Account] += int64(n) * p.Amount
	}
	for account, balance := range balances {
		if entered[account] != balance {
			return f, fmt.Errorf("the balance of %s is %d, but the sum of its entries is %d", account, balance, entered[account])
		}
	}
	f.Expected = len(due)
	f.Lost = len(due) - len(booked)
	for account, balance := range expected {
		f.MoneyOff += max(balance-balances[account], balances[account]-balance)
	}
	return f, nil
}

// entries returns how often each payment was booked.
func entries(ctx context.Context, db *sql.DB) (map[payment]int, error) {
	rows, err := db.QueryContext(ctx, `select producer, id, account, amount, count(*) from entries group by 1, 2, 3, 4`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	booked := map[payment]int{}
	for rows.Next() {
		var p payment
		var n int
		if err := rows.Scan(&p.Producer, &p.ID, &p.Account, &p.Amount, &n); err != nil {
			return nil, err
		}
		booked[p] = n
	}
	return booked, rows.Err()
}

func balances(ctx context.Context, db *sql.DB) (map[string]int64, error) {
	rows, err := db.QueryContext(ctx, `select id, balance from accounts`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]int64{}
	for rows.Next() {
		var id string
		var balance int64
		if err := rows.Scan(&id, &balance); err != nil {
			return nil, err
		}
		all[id] = balance
	}
	return all, rows.Err()
}
