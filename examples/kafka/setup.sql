-- The shop's tables. Semel runs this file once.
create table accounts (id text primary key, balance bigint not null);
create table entries (payment text not null, account text not null references accounts, amount bigint not null check (amount > 0));
insert into accounts select 'account-' || n, 0 from generate_series(0, 9) n;
