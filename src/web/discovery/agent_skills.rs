//! `/.well-known/agent-skills/`: a skill that teaches agents to use this site.

use serde_json::{Value, json};

use crate::domain::base_url::BaseUrl;
use crate::domain::sha256::Sha256;
use crate::site::Skill;

pub(super) fn path(skill: &Skill) -> String {
    format!("/.well-known/agent-skills/{}/SKILL.md", skill.name)
}

pub(super) fn index(skill: &Skill, base_url: &BaseUrl) -> Value {
    json!({
        "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
        "skills": [{
            "name": skill.name,
            "type": "skill-md",
            "description": skill.description,
            "url": base_url.to(&path(skill)),
            "digest": format!("sha256:{}", Sha256::of(skill.text.as_bytes()).hex()),
        }],
    })
}
