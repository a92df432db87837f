-- Calls that were begun for a row's message outside of any transaction, of how many it is
-- known what became, when the first was begun, and under which claim the last.
alter table {prefix}inbox add column calls_started bigint not null default 0;

alter table {prefix}inbox add column calls_finished bigint not null default 0;

alter table {prefix}inbox add column called_at timestamptz;

alter table {prefix}inbox add column call_token bigint;
