-- The shop's tables. semel.yaml names this file in the key setup, and `semel run`
-- executes the file once.
create table accounts (
    id      text primary key,
    balance integer not null
) strict;

-- All booked payments. The table has no unique key on purpose: if a payment were
-- booked twice, the table would show it.
create table entries (
    payment text not null,
    account text not null references accounts (id),
    amount  integer not null check (amount > 0)
) strict;

with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 99)
insert into accounts (id, balance)
select printf('acc-%03d', n), 0 from numbers;
