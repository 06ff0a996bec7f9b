//! Signing in with a name and a password.

use std::time::Duration;

use serde_json::{Value, json};
use steelyard_serve::{Scope, UserName};

use super::client::{Answer, Running, name};

const PASSWORD: &str = "correct horse battery";

fn user(text: &str) -> UserName {
    UserName::new(text).unwrap()
}

async fn login(gateway: &Running, body: &Value) -> Answer {
    gateway.send("POST", "/v1/auth/login", "", body.to_string().as_bytes()).await
}

async fn token(gateway: &Running, user: &str) -> String {
    let answer = login(gateway, &json!({ "user": user, "password": PASSWORD })).await.is(200);
    assert_eq!(answer.json()["expires_in"], 900);
    answer.json()["token"].as_str().unwrap().to_owned()
}

async fn ask(gateway: &Running, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let head = format!("Authorization: Bearer {token}\r\n");
    gateway.send(method, path, &head, body.as_bytes()).await
}

#[tokio::test]
async fn a_user_has_what_the_tenant_has_and_nothing_else() {
    let gateway = Running::start("").await;
    let set = |tenant: &str, who: &str, scope| {
        let (gateway, tenant, who) = (&gateway, name(tenant), user(who));
        async move { gateway.admin.set_user(&tenant, &who, PASSWORD, scope).await }
    };
    set("a", "ann", Scope::Write).await.unwrap();
    set("a", "al", Scope::Read).await.unwrap();
    set("b", "bob", Scope::Write).await.unwrap();
    assert!(set("b", "ann", Scope::Write).await.is_err(), "a name is one of all tenants");
    let (ann, al, bob) =
        (token(&gateway, "ann").await, token(&gateway, "al").await, token(&gateway, "bob").await);
    let path = "/v1/docs/c/x";
    ask(&gateway, &ann, "PUT", path, r#"{"of":"a"}"#).await.is(201);
    ask(&gateway, &al, "PUT", path, "{}").await.is(403);
    assert_eq!(ask(&gateway, &al, "GET", path, "").await.is(200).text(), r#"{"of":"a"}"#);
    ask(&gateway, &bob, "GET", path, "").await.is(404);
    assert_eq!(gateway.get(&gateway.a, path).await.is(200).text(), r#"{"of":"a"}"#);
    // Another password ends what was given for the one before.
    let other = "another long password";
    gateway.admin.set_user(&name("a"), &user("ann"), other, Scope::Read).await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    login(&gateway, &json!({ "user": "ann", "password": PASSWORD })).await.is(401);
    let new = login(&gateway, &json!({ "user": "ann", "password": other })).await.is(200);
    let new = new.json()["token"].as_str().unwrap().to_owned();
    ask(&gateway, &ann, "GET", path, "").await.is(401);
    ask(&gateway, &new, "GET", path, "").await.is(200);
    ask(&gateway, &new, "PUT", path, "{}").await.is(403);
    gateway.admin.revoke_key(&name("a"), "user:ann").await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    ask(&gateway, &new, "GET", path, "").await.is(401);
    login(&gateway, &json!({ "user": "ann", "password": other })).await.is(401);
    ask(&gateway, &al, "GET", path, "").await.is(200);
    // Let in again, with the same password: a token of before is none.
    gateway.admin.set_user(&name("a"), &user("ann"), other, Scope::Read).await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    ask(&gateway, &new, "GET", path, "").await.is(401);
}

#[tokio::test]
async fn a_name_that_another_tenant_has_later_brings_no_token_with_it() {
    let gateway = Running::start("").await;
    let (a, b, ann) = (name("a"), name("b"), user("ann"));
    gateway.admin.set_user(&a, &ann, PASSWORD, Scope::Write).await.unwrap();
    let old = token(&gateway, "ann").await;
    ask(&gateway, &old, "PUT", "/v1/docs/c/x", r#"{"of":"a"}"#).await.is(201);
    gateway.put(&gateway.b, "/v1/docs/c/x", "", r#"{"of":"b"}"#).await.is(201);
    gateway.admin.remove(&a, async {}).await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    gateway.admin.set_user(&b, &ann, PASSWORD, Scope::Write).await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    ask(&gateway, &old, "GET", "/v1/docs/c/x", "").await.is(401);
    ask(&gateway, &old, "PUT", "/v1/docs/c/x", "{}").await.is(401);
    let new = token(&gateway, "ann").await;
    assert_eq!(ask(&gateway, &new, "GET", "/v1/docs/c/x", "").await.text(), r#"{"of":"b"}"#);
}

#[tokio::test]
async fn who_is_not_let_in_is_not_told_why() {
    let gateway = Running::start("").await;
    gateway.admin.set_user(&name("a"), &user("ann"), PASSWORD, Scope::Write).await.unwrap();
    let wrong = login(&gateway, &json!({ "user": "ann", "password": "x" })).await.is(401);
    for who in ["nobody", "a", "user:ann", "", "ann\u{0}", &"x".repeat(500)] {
        let answer = login(&gateway, &json!({ "user": who, "password": PASSWORD })).await.is(401);
        assert_eq!(answer.text(), wrong.text(), "{who:?}");
    }
    for body in [
        json!({}),
        json!({ "user": "ann" }),
        json!({ "user": { "$ne": "" }, "password": { "$ne": "" } }),
        json!({ "user": "ann", "password": PASSWORD, "tenant": "b" }),
        json!([]),
    ] {
        login(&gateway, &body).await.is(400);
    }
    let twice = br#"{"user":"ann","user":"bob","password":"correct horse battery"}"#;
    gateway.send("POST", "/v1/auth/login", "", twice).await.is(400);
    gateway.send("POST", "/v1/auth/login", "", &[b' '; 5000]).await.is(413);
    gateway.send("GET", "/v1/auth/login", "", b"").await.is(405);
    // No API key, and no token of another installation or algorithm.
    for token in ["eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c2VyOmFubiJ9.", "a.b.c", "..", "user:ann.x"] {
        ask(&gateway, token, "GET", "/v1/docs", "").await.is(401);
    }
}

#[tokio::test]
async fn a_name_is_tried_so_often_and_others_do_not_wait_for_it() {
    let gateway = Running::start("").await;
    for who in ["ann", "bob"] {
        gateway.admin.set_user(&name("a"), &user(who), PASSWORD, Scope::Write).await.unwrap();
    }
    let wrong = json!({ "user": "ann", "password": "wrong wrong wrong" });
    for _ in 0..10 {
        login(&gateway, &wrong).await.is(401);
    }
    login(&gateway, &wrong).await.is(429);
    login(&gateway, &json!({ "user": "ann", "password": PASSWORD })).await.is(429);
    token(&gateway, "bob").await;
    gateway.clock.advance(Duration::from_secs(5));
    token(&gateway, "ann").await;
    login(&gateway, &wrong).await.is(429);
}
