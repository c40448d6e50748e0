//! What the app costs: `[price]` in `site.toml`.

use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::values::web_url;
use crate::domain::text::quantity;

/// What to write in place of `price` and `currency` at the top of the file.
const WRITE_A_TABLE: &str = "the price is a table now: at the end of the file write [price], and below it lines such as \
                             amount = \"19.00\" and currency = \"EUR\". Leave it out if the app is free";

/// The currency of a price of nothing, which schema.org requires, too.
const CURRENCY_OF_FREE: &str = "USD";

const MAX_TRIAL_DAYS: u16 = 3650;

/// Free, unless there is a sale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Price(Option<Sale>);

/// The conditions on which the app is sold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sale {
    /// A decimal number above zero.
    amount: String,
    /// Three letters of ISO 4217.
    currency: String,
    trial_days: Option<u16>,
    buy_url: Option<String>,
}

impl Price {
    /// Such as "25 EUR, 14 days free to try".
    pub(super) fn words(&self) -> String {
        let Some(Sale { amount, currency, .. }) = &self.0 else { return "Free".to_owned() };
        let trial = self.trial_words().map(|trial| format!(", {trial}")).unwrap_or_default();
        format!("{amount} {currency}{trial}")
    }

    fn trial_words(&self) -> Option<String> {
        let days = self.0.as_ref()?.trial_days?;
        Some(format!("{} free to try", quantity(days, "day", "days")))
    }

    /// Where the app is bought.
    pub(super) fn buy_url(&self) -> Option<&str> {
        self.0.as_ref()?.buy_url.as_deref()
    }

    /// The offer in terms of schema.org.
    pub(super) fn json_ld(&self) -> Value {
        let (amount, currency) =
            self.0.as_ref().map_or(("0", CURRENCY_OF_FREE), |sale| (sale.amount.as_str(), sale.currency.as_str()));
        let mut offer = json!({ "@type": "Offer", "price": amount, "priceCurrency": currency });
        if let Some(url) = self.buy_url() {
            offer["url"] = url.into();
        }
        if let Some(trial) = self.trial_words() {
            offer["description"] = trial.into();
        }
        offer
    }
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    amount: Amount,
    currency: Option<String>,
    trial_days: Option<u16>,
    #[serde(default, deserialize_with = "web_url")]
    buy_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write the amount as \"19.00\" or 19")]
enum Amount {
    Text(String),
    Whole(u64),
}

impl PriceTable {
    fn parse(self) -> Result<Price, &'static str> {
        let amount = match self.amount {
            Amount::Text(text) => text,
            Amount::Whole(number) => number.to_string(),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = amount.split_once('.').unwrap_or((&amount, "0"));
        if !is_digits(whole) || !is_digits(fraction) {
            return Err("write the amount with digits and a point, such as \"19.00\"");
        }
        let is_currency = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        if self.currency.as_deref().is_some_and(|currency| !is_currency(currency)) {
            return Err("write the currency as three capital letters, such as \"EUR\"");
        }
        if self.trial_days.is_some_and(|days| days == 0 || days > MAX_TRIAL_DAYS) {
            return Err("trial_days is a number of days from 1 to 3650; leave it out if there is no trial");
        }
        if amount.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
            return Ok(Price::default());
        }
        let currency = self.currency.ok_or("a price needs a currency, such as currency = \"EUR\"")?;
        Ok(Price(Some(Sale { amount, currency, trial_days: self.trial_days, buy_url: self.buy_url })))
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableAlone;

        impl<'de> Visitor<'de> for TableAlone {
            type Value = Price;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a table [price]")
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Price, A::Error> {
                let table = PriceTable::deserialize(de::value::MapAccessDeserializer::new(table))?;
                table.parse().map_err(de::Error::custom)
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Price, E> {
                Err(E::custom(WRITE_A_TABLE))
            }

            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Price, E> {
                Err(E::custom(WRITE_A_TABLE))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Price, E> {
                Err(E::custom(WRITE_A_TABLE))
            }
        }

        deserializer.deserialize_any(TableAlone)
    }
}

/// `currency` at the top of the file, where it was before there was a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrencyOutsideTable;

impl<'de> Deserialize<'de> for CurrencyOutsideTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        Err(de::Error::custom(WRITE_A_TABLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(table: &str) -> Result<String, String> {
        let table = toml::from_str::<PriceTable>(table).map_err(|error| error.message().to_owned())?;
        table.parse().map(|price| price.words()).map_err(str::to_owned)
    }

    #[test]
    fn a_price_says_what_is_paid_and_how_long_it_is_free_to_try() {
        for (table, expected) in [
            ("amount = 25\ncurrency = \"EUR\"\ntrial_days = 14", "25 EUR, 14 days free to try"),
            ("amount = \"19.00\"\ncurrency = \"USD\"\ntrial_days = 1", "19.00 USD, 1 day free to try"),
            ("amount = \"0.99\"\ncurrency = \"GBP\"", "0.99 GBP"),
            ("amount = 0", "Free"),
            ("amount = \"0.00\"\ncurrency = \"EUR\"\ntrial_days = 14\nbuy_url = \"https://shop.example/\"", "Free"),
        ] {
            assert_eq!(words(table), Ok(expected.to_owned()), "{table}");
        }
    }

    #[test]
    fn a_price_of_the_wrong_form_is_refused() {
        for (table, why) in [
            ("currency = \"EUR\"", "missing field `amount`"),
            ("amount = 25", "needs a currency"),
            ("amount = 25\ncurrency = \"Euro\"", "three capital letters"),
            ("amount = \"25,00\"\ncurrency = \"EUR\"", "with digits and a point"),
            ("amount = \".\"\ncurrency = \"EUR\"", "with digits and a point"),
            ("amount = 19.9\ncurrency = \"EUR\"", "\"19.00\" or 19"),
            ("amount = -1\ncurrency = \"EUR\"", "\"19.00\" or 19"),
            ("amount = 25\ncurrency = \"EUR\"\ntrial_days = 0", "from 1 to 3650"),
            ("amount = 25\ncurrency = \"EUR\"\nbuy_url = \"shop\"", "http"),
            ("amount = 25\ncurency = \"EUR\"", "unknown field `curency`"),
        ] {
            let refused = words(table).unwrap_err();
            assert!(refused.contains(why), "{table}: {refused}");
        }
    }
}
