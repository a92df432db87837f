create table accounts (id text primary key, balance integer not null check (balance >= 0));
insert into accounts values ('account-0', 10000), ('account-1', 10000), ('account-2', 10000), ('account-3', 10000), ('account-4', 10000);
create table notes (account text not null, text text);
