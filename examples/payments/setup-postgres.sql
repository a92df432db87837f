-- The shop's tables. postgres.yaml names this file in the key setup, and `semel run`
-- executes the file once.
create table accounts (
    id      text primary key,
    balance bigint not null
);

-- All booked payments. The table has no unique key on purpose: if a payment were
-- booked twice, the table would show it.
create table entries (
    payment text not null,
    account text not null references accounts (id),
    amount  bigint not null check (amount > 0)
);

insert into accounts (id, balance)
select 'acc-' || lpad(n::text, 3, '0'), 0 from generate_series(0, 99) as n;
