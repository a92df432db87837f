-- Each result row has a fault and what to do about it.

-- name: unfit
select what, remedy from (
  select 'the database stores text as ' || current_setting('server_encoding') || ', not as UTF8' as what,
    'create a database with encoding ''UTF8'', move the data there, and name it where this one is named' as remedy
  where current_setting('server_encoding') <> 'UTF8'
  union all
  select 'session_replication_role is ' || current_setting('session_replication_role') || ', so that no foreign key is enforced',
    'set it to origin for this role, this database and this connection'
  where current_setting('session_replication_role') = 'replica'
  union all
  select 'array_nulls is off, so that what is absent would be kept as the text NULL',
    'set it to on for this role, this database and this connection'
  where current_setting('array_nulls') <> 'on'
) faults;

-- Open schemas returns the schemas of the search_path in which a role can create objects, other
-- than the owner of the schema, the current role and superusers.

-- name: open schemas
select n.nspname::text, case when g.grantee = 0::oid then 'PUBLIC' else quote_ident(r.rolname::text) end
from pg_namespace n cross join lateral aclexplode(n.nspacl) g left join pg_roles r on r.oid = g.grantee
where n.nspname::text in (select unnest(current_schemas(false))::text) and g.privilege_type = 'CREATE' and g.grantee <> n.nspowner
  and (g.grantee = 0::oid or not r.rolsuper and r.rolname <> current_user)
order by 1, 2;

-- Rights returns the privileges that a role needs in Semel's schema for semel run and for the
-- commands of operators: for each object, all needed privileges and the missing ones. This list is
-- the only one. TestTheRightsAreThoseThatTheStatementsNeed compares it with all statements. The
-- tables with daily partitions are found by their names. A result row without the name of an object
-- means that the object does not exist.

-- name: rights
with asked as materialized (
  select case $1::text when '' then current_user::name else $1::text::name end as role
), needed (kind, name, needs) as (values
  (0, '', 'usage'),
  (1, 'scopes', 'select,insert,update'), (1, 'markers', 'select,insert,update,delete'), (1, 'guard', 'select,insert,delete'), (1, 'guard_end', 'select'),
  (1, 'inbox', 'select,insert,update,delete'), (1, 'streams', 'select,insert,update,delete'), (1, 'lines', 'select,insert,update,delete'),
  (1, 'positions', 'select,insert,update,delete'), (1, 'results', 'select,insert,update,delete'), (1, 'keys', 'select,insert,update,delete'),
  (1, 'retention', 'select,insert,update'), (1, 'ages', 'select,insert,update,delete'), (1, 'dated', 'select,update'),
  (1, 'derivations', 'select,insert,update'), (1, 'owners', 'select,insert,update'), (1, 'controls', 'select,insert,update'),
  (1, 'generation_states', 'select,insert,update'), (1, 'generation_fences', 'select,insert,update,delete'), (1, 'replays', 'select,insert,update'),
  (1, 'acts', 'select,insert'), (1, 'edits', 'select,insert,update'), (1, 'seals', 'select,insert'), (1, 'seal_end', 'select,insert,update'),
  (1, 'setup', 'select,insert'), (1, 'migrations', 'select'),
  (2, 'acts', 'select')
), objects as materialized (
  select n.kind, n.name as known, n.needs, case n.kind when 0 then s.oid when 1 then c.oid
      when 2 then (select d.objid from pg_depend d where d.refobjid = c.oid and d.classid = 'pg_class'::regclass::oid and d.deptype = 'i' and d.refobjsubid > 0 limit 1) end as id
  from needed n left join pg_namespace s on s.oid = to_regnamespace('{schema}')
  left join pg_class c on c.relnamespace = s.oid and c.relname::text = '{name}' || n.name
  union all
  select 1, c.relname::text, 'select,insert,update,delete', c.oid
  from pg_class c cross join lateral (select substring(c.relname::text from length('{name}markers_') + 1) as rest) d
  where c.relnamespace = to_regnamespace('{schema}')::oid and c.relkind in ('p', 'r', 'v') and starts_with(c.relname::text, '{name}markers_')
    and d.rest ~ '^[0-9]{1,18}(_aside|_days)?$'
)
select case o.kind when 0 then 'schema ' || quote_ident(s.nspname::text)
    else case o.kind when 2 then 'sequence ' else '' end || quote_ident(s.nspname::text) || '.' || quote_ident(c.relname::text) end,
  o.known, string_agg(p.privilege, ', '::text order by p.place),
  coalesce(string_agg(p.privilege, ', '::text order by p.place) filter (where not case o.kind when 0 then has_schema_privilege(a.role, o.id, p.privilege)
    when 1 then has_table_privilege(a.role, o.id, p.privilege) else has_sequence_privilege(a.role, o.id, p.privilege) end), ''), a.role::text
from asked a cross join objects o
cross join unnest(string_to_array(o.needs, ','::text)) with ordinality p (privilege, place)
left join pg_namespace s on s.oid = to_regnamespace('{schema}')
left join pg_class c on c.oid = o.id and o.kind > 0
group by o.kind, o.known, o.id, s.nspname, c.relname, a.role order by o.kind, c.relname, o.known;

-- name: lint
with tables as materialized (
  select t.name, to_regclass(t.name) as id, t.protects from (values
    ('{prefix}scopes', true), ('{prefix}markers', true),
    ('{prefix}guard_end', true), ('{prefix}guard', true),
    ('{prefix}streams', true), ('{prefix}lines', true), ('{prefix}derivations', true), ('{prefix}owners', false), ('{prefix}inbox', false),
    ('{prefix}acts', false), ('{prefix}seals', false), ('{prefix}seal_end', false), ('{prefix}positions', false), ('{prefix}retention', false), ('{prefix}ages', false), ('{prefix}controls', false), ('{prefix}generation_states', true), ('{prefix}generation_fences', true),
    ('{prefix}dated', false), ('{prefix}keys', true), ('{prefix}replays', false), ('{prefix}results', false), ('{prefix}edits', false), ('{prefix}setup', false), ('{prefix}migrations', false)) t (name, protects)
), keys as materialized (
  select x.indrelid, x.indisprimary, array(
    select a.attname::text from unnest(x.indkey) with ordinality k (n, i)
    join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n order by k.i) as columns
  from pg_index x
  where x.indrelid in (select id from tables) and x.indisunique and x.indisvalid and x.indimmediate and x.indpred is null
), references_end as materialized (
  select c.oid, c.conrelid from pg_constraint c
  where c.conrelid = to_regclass('{prefix}guard') and c.confrelid = to_regclass('{prefix}guard_end') and c.contype = 'f'
  and c.condeferrable and c.condeferred and c.convalidated
)
select what, remedy from (
  select name || ' is missing' as what, case name
    when '{prefix}markers' then 'restore it from a backup; without its rows everything that comes again takes effect again'
    when '{prefix}scopes' then 'restore it from a backup; without its rows everything that comes again takes effect again'
    when '{prefix}derivations' then 'restore it from a backup; without its rows what was marked under a changed identity is not found again'
    when '{prefix}streams' then 'restore it from a backup; without its rows each stream waits for its first version again'
    else 'create it as semel migrate print shows it' end as remedy
  from tables where id is null
  union all
  select c.name || ' is not kept through a crash of the server: it is unlogged, and if the server crashed since, its rows are gone', 'alter table ' || c.name || ' set logged'
  from (
    select name, id from tables
    union
    select relid::text, relid from tables cross join pg_partition_tree(id)
  ) c join pg_class k on k.oid = c.id where k.relpersistence <> 'p'
  union all
  select '{prefix}markers has no primary key (scope, id)', 'alter table {prefix}markers add primary key (scope, id)'
  where to_regclass('{prefix}markers') is not null and not exists (
    select 1 from keys where indrelid = to_regclass('{prefix}markers') and indisprimary and columns operator(pg_catalog.=) array['scope', 'id'])
  union all
  select '{prefix}streams has no primary key (scope, name)', 'alter table {prefix}streams add primary key (scope, name)'
  where to_regclass('{prefix}streams') is not null and not exists (
    select 1 from keys where indrelid = to_regclass('{prefix}streams') and indisprimary and columns operator(pg_catalog.=) array['scope', 'name'])
  union all
  select '{prefix}lines has no primary key (name)', 'alter table {prefix}lines add primary key (name)'
  where to_regclass('{prefix}lines') is not null and not exists (
    select 1 from keys where indrelid = to_regclass('{prefix}lines') and indisprimary and columns operator(pg_catalog.=) array['name'])
  union all
  select '{prefix}inbox has no unique key (scope, id, conflict)', 'alter table {prefix}inbox add unique (scope, id, conflict)'
  where to_regclass('{prefix}inbox') is not null and not exists (
    select 1 from keys where indrelid = to_regclass('{prefix}inbox') and columns operator(pg_catalog.=) array['scope', 'id', 'conflict'])
  union all
  select '{prefix}guard has no deferred foreign key to {prefix}guard_end',
    'alter table {prefix}guard add foreign key (number) references {prefix}guard_end (number) deferrable initially deferred'
  where to_regclass('{prefix}guard') is not null and not exists (select 1 from references_end)
  union all
  select '{prefix}guard has no deferred foreign key that is enforced: its triggers are off', 'alter table {prefix}guard enable trigger all'
  from references_end r where 2 > (
    select count(*) from pg_trigger t where t.tgconstraint = r.oid and t.tgrelid = r.conrelid and t.tgenabled in ('O', 'A'))
  union all
  select t.name || ' has the trigger ' || quote_ident(g.tgname) || ', which may change what is written there',
    'drop trigger ' || quote_ident(g.tgname) || ' on ' || t.name
  from tables t join pg_trigger g on g.tgrelid = t.id
  where not g.tgisinternal and g.tgenabled in ('O', 'A') and (t.protects or g.tgtype::int & 66 <> 0)
    and not (g.tgname in ('{name}acts_stay', '{name}acts_remain') and t.name = '{prefix}acts')
    and not (g.tgname in ('{name}seals_stay', '{name}seals_remain') and t.name = '{prefix}seals')
  union all
  select t.name || ' has the rule ' || quote_ident(r.rulename) || ', which may change what is written there',
    'drop rule ' || quote_ident(r.rulename) || ' on ' || t.name
  from tables t join pg_rewrite r on r.ev_class = t.id
  where r.ev_enabled in ('O', 'A') and r.rulename <> '_RETURN'
  union all
  select t.name || ' has row-level security, which applies to the role ' || quote_ident(current_user) || ' and may hide rows or refuse them',
    'alter table ' || t.name || ' disable row level security (or give the role a policy for all commands using (true), and none that is restrictive)'
  from tables t cross join lateral (
    select coalesce(bool_or(p.open and p.polpermissive), false) and not coalesce(bool_or(not p.polpermissive), false) as open
    from (
      select polpermissive, polcmd = '*' and pg_get_expr(polqual, polrelid) = 'true'
        and coalesce(pg_get_expr(polwithcheck, polrelid), 'true') = 'true' as open
      from pg_policy where polrelid = t.id and exists (
        select 1 from unnest(polroles) r where case r when 0::oid then true else pg_has_role(r, 'usage') end)
    ) p
  ) policies
  where t.id is not null and row_security_active(t.id) and not policies.open
  union all
  select '{prefix}acts can be changed: a trigger is missing', 'create it as semel migrate print shows it'
  where to_regclass('{prefix}acts') is not null and 2 <> (
    select count(*) from pg_trigger t where t.tgrelid = to_regclass('{prefix}acts') and t.tgname in ('{name}acts_stay', '{name}acts_remain'))
  union all
  select '{prefix}acts can be changed: a trigger is off', 'alter table {prefix}acts enable trigger all'
  where exists (
    select 1 from pg_trigger t where t.tgrelid = to_regclass('{prefix}acts') and t.tgname in ('{name}acts_stay', '{name}acts_remain')
    and t.tgenabled not in ('O', 'A'))
  union all
  select '{prefix}seals can be changed: a trigger is missing', 'create it as semel migrate print shows it'
  where to_regclass('{prefix}seals') is not null and 2 <> (
    select count(*) from pg_trigger t where t.tgrelid = to_regclass('{prefix}seals') and t.tgname in ('{name}seals_stay', '{name}seals_remain'))
  union all
  select '{prefix}seals can be changed: a trigger is off', 'alter table {prefix}seals enable trigger all'
  where exists (
    select 1 from pg_trigger t where t.tgrelid = to_regclass('{prefix}seals') and t.tgname in ('{name}seals_stay', '{name}seals_remain')
    and t.tgenabled not in ('O', 'A'))
) faults;

-- name: lint rows
select what, remedy from (
  select '{prefix}guard_end has rows, with which a guard guards nothing' as what, 'delete from {prefix}guard_end' as remedy
  where exists (select 1 from {prefix}guard_end)
  union all
  select '{prefix}guard has rows, which no transaction may leave', 'delete from {prefix}guard'
  where exists (select 1 from {prefix}guard)
  union all
  select c.relname::text || ' has markers of a consumer by day, and {prefix}dated has no row that says whose they are: they are looked for no more',
    'restore the row ' || d.number || ' of {prefix}dated from a backup; without it everything of those days that comes again takes effect again'
  from pg_class here join pg_class c on c.relnamespace = here.relnamespace and c.relkind = 'p'
  cross join lateral (select substring(c.relname from length('{name}markers_') + 1) as number) d
  where here.oid = to_regclass('{prefix}dated') and starts_with(c.relname::text, '{name}markers_') and d.number ~ '^[0-9]{1,18}$'
    and not exists (select 1 from {prefix}dated o where o.number = d.number::bigint)
) faults;
