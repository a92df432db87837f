-- The shop's own tables. `semel run` executes this file once (setup: in
-- postgres.yaml) and remembers its hash.
create table accounts (
    id      text primary key,
    balance bigint not null
);

-- What was booked. There is no unique key on purpose: a payment booked twice
-- would stand here twice.
create table entries (
    payment text not null,
    account text not null references accounts (id),
    amount  bigint not null check (amount > 0)
);

insert into accounts (id, balance)
select 'acc-' || lpad(n::text, 3, '0'), 0 from generate_series(0, 99) as n;
