-- The shop's own tables. `semel run` executes this file once (setup: in
-- semel.yaml) and remembers its hash.
create table accounts (
    id      text primary key,
    balance integer not null
) strict;

-- What was booked. There is no unique key on purpose: a payment booked twice
-- would stand here twice.
create table entries (
    payment text not null,
    account text not null references accounts (id),
    amount  integer not null check (amount > 0)
) strict;

with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 99)
insert into accounts (id, balance)
select printf('acc-%03d', n), 0 from numbers;
