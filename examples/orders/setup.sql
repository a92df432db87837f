create table history (
  at integer primary key autoincrement,
  order_id text not null,
  version integer not null,
  what text not null
) strict;

create table stock (article text primary key, units integer not null check (units >= 0)) strict;
insert into stock (article, units) values ('lamp', 5), ('chair', 20);

create table reservations (
  at integer primary key autoincrement,
  article text not null,
  order_id text not null,
  units integer not null
) strict;

create table search_index (
  article text primary key,
  title text not null,
  version integer not null
) strict;
