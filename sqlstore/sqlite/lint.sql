-- Each result row has a fault and what to do about it.

-- name: unfit
select '', '' where false;

-- name: lint
with tables (name, protects) as (values
  ('{prefix}scopes', true), ('{prefix}markers', true), ('{prefix}guard_end', true), ('{prefix}guard', true),
  ('{prefix}streams', true), ('{prefix}lines', true), ('{prefix}derivations', true), ('{prefix}owners', false),
  ('{prefix}inbox', false), ('{prefix}acts', false), ('{prefix}seals', false), ('{prefix}seal_end', false), ('{prefix}positions', false), ('{prefix}retention', false), ('{prefix}ages', false),
  ('{prefix}controls', false), ('{prefix}generation_states', true), ('{prefix}generation_fences', true), ('{prefix}replays', false), ('{prefix}results', false), ('{prefix}edits', false), ('{prefix}setup', false), ('{prefix}migrations', false)
), there (name, protects) as (
  select t.name, t.protects from tables t where exists (
    select 1 from sqlite_master m where m.type = 'table' and m.name = t.name collate nocase)
)
select what, remedy from (
  select name || ' is missing' as what, case when name in ('{prefix}markers', '{prefix}scopes')
    then 'restore it from a backup; without its rows everything that comes again takes effect again'
    when name = '{prefix}derivations' then 'restore it from a backup; without its rows what was marked under a changed identity is not found again'
    when name = '{prefix}streams' then 'restore it from a backup; without its rows each stream waits for its first version again'
    else 'create it as semel migrate print shows it' end as remedy
  from tables where name not in (select name from there)
  union all
  select '{prefix}markers has no primary key (scope, id)', 'make it anew as semel migrate print shows it, with the rows that it has'
  where exists (select 1 from there where name = '{prefix}markers') and (not exists (
    select 1 from pragma_table_info('{prefix}markers') where name = 'scope' and pk = 1)
    or not exists (select 1 from pragma_table_info('{prefix}markers') where name = 'id' and pk = 2)
    or (select count(*) from pragma_table_info('{prefix}markers') where pk > 0) <> 2)
  union all
  select '{prefix}inbox has no unique key (scope, id, conflict)', 'create unique index {prefix}inbox_key on {prefix}inbox (scope, id, conflict)'
  where exists (select 1 from there where name = '{prefix}inbox') and not exists (
    select 1 from pragma_index_list('{prefix}inbox') l where l."unique" = 1 and l.partial = 0
    and (select group_concat(name) from (select name from pragma_index_info(l.name) order by seqno)) = 'scope,id,conflict')
  union all
  select '{prefix}guard has no deferred foreign key to {prefix}guard_end',
    'drop table {prefix}guard; create table {prefix}guard (number integer primary key' ||
    ' references {prefix}guard_end (number) deferrable initially deferred, asked integer)'
  where exists (select 1 from there where name = '{prefix}guard') and not exists (
    select 1 from pragma_foreign_key_list('{prefix}guard') f join sqlite_master m on m.name = '{prefix}guard' collate nocase
    where f."table" = '{prefix}guard_end' collate nocase and f."from" = 'number' collate nocase
    and coalesce(f."to", 'number') = 'number' collate nocase
    and m.sql like '%deferrable initially deferred%' and m.sql not like '%not deferrable%')
  union all
  select t.name || ' has the trigger ' || m.name || ', which may change what is written there', 'drop trigger "' || replace(m.name, '"', '""') || '"'
  from there t join sqlite_master m on m.type = 'trigger' and m.tbl_name = t.name collate nocase
  where (t.protects or m.sql not like '% after insert on %')
    and not (t.name = '{prefix}acts' and m.name in ('{prefix}acts_stay', '{prefix}acts_remain'))
    and not (t.name = '{prefix}seals' and m.name in ('{prefix}seals_stay', '{prefix}seals_remain'))
  union all
  select '{prefix}acts can be changed: a trigger is missing', 'create it as semel migrate print shows it'
  where exists (select 1 from there where name = '{prefix}acts') and 2 <> (
    select count(*) from sqlite_master where type = 'trigger' and tbl_name = '{prefix}acts'
    and name in ('{prefix}acts_stay', '{prefix}acts_remain'))
  union all
  select '{prefix}seals can be changed: a trigger is missing', 'create it as semel migrate print shows it'
  where exists (select 1 from there where name = '{prefix}seals') and 2 <> (
    select count(*) from sqlite_master where type = 'trigger' and tbl_name = '{prefix}seals'
    and name in ('{prefix}seals_stay', '{prefix}seals_remain'))
);

-- name: lint rows
select what, remedy from (
  select '{prefix}guard_end has rows, with which a guard guards nothing' as what, 'delete from {prefix}guard_end' as remedy
  where exists (select 1 from {prefix}guard_end)
  union all
  select '{prefix}guard has rows, which no transaction may leave', 'delete from {prefix}guard'
  where exists (select 1 from {prefix}guard)
);
