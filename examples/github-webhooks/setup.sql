create table issues (
  repository text not null,
  number integer not null,
  title text not null,
  state text not null check (state in ('open', 'closed')),
  at text not null,
  primary key (repository, number)
) strict;
