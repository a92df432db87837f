create table invoices (
  id text primary key,
  amount integer not null check (amount > 0),
  state text not null check (state in ('open', 'paid'))
) strict;

create table documents (
  invoice text primary key,
  what text not null,
  at text not null
) strict;
