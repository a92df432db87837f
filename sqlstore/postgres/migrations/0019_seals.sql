-- Seals: the chain into which acts are sealed, each line with the hash of the one before, and
-- where it ends. A line has its act as it was.
create table {prefix}seals (
  sequence bigint primary key,
  act bigint not null unique,
  "row" bigint not null,
  verb text not null,
  who text not null,
  why text not null,
  result text not null,
  at timestamptz not null,
  sealed_at timestamptz not null,
  keyed boolean not null,
  previous bytea not null,
  hash bytea not null
);

create table {prefix}seal_end (
  one boolean primary key default true check (one),
  sequence bigint not null,
  keyed boolean not null,
  hash bytea not null,
  proof bytea not null
);

create function {prefix}seals_refuse() returns trigger language plpgsql as $function$
begin
  raise exception 'seals are append-only';
end
$function$;

create trigger {name}seals_stay before update or delete on {prefix}seals
for each row execute function {prefix}seals_refuse();

create trigger {name}seals_remain before truncate on {prefix}seals
for each statement execute function {prefix}seals_refuse();
