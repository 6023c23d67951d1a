//! The name of a certificate's holder, as RFC 2253 writes it: the most special part first.

use x509_parser::der_parser::asn1_rs::Oid;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509Certificate};

/// `CN=client,OU=users,O=Org`; `None` for bytes that are no certificate, and for a name with a part that cannot be read: left out or
/// empty, it would make different names equal.
pub(super) fn subject_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let mut parts = Vec::new();
    for rdn in subject.iter_rdn() {
        let shown = |a: &AttributeTypeAndValue<'_>| {
            Some(format!("{}={}", short_name(a.attr_type()), escape(a.as_str().ok()?)))
        };
        let attributes: Vec<String> = rdn.iter().map(shown).collect::<Option<_>>()?;
        parts.push(attributes.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

/// The names that OpenSSL uses; a type without one is written in numbers.
fn short_name(oid: &Oid<'_>) -> String {
    let numbers = oid.to_id_string();
    let name = match numbers.as_str() {
        "2.5.4.3" => "CN",
        "2.5.4.4" => "SN",
        "2.5.4.5" => "serialNumber",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "street",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.12" => "title",
        "2.5.4.42" => "GN",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "emailAddress",
        _ => return numbers,
    };
    name.to_string()
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (i, c) in value.chars().enumerate() {
        let at_edge = (i == 0 && matches!(c, ' ' | '#')) || (i == last && c == ' ');
        if at_edge || matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escape, subject_name};
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    #[test]
    fn a_name_with_a_part_that_cannot_be_read_is_none() {
        let name_with = |organisation: DnValue| {
            let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::OrganizationName, organisation);
            let key = KeyPair::generate().unwrap();
            subject_name(params.self_signed(&key).unwrap().der())
        };
        assert_eq!(name_with(DnValue::Utf8String("Org".to_string())), Some("O=Org".to_string()));
        assert_eq!(name_with(DnValue::BmpString("Org".try_into().unwrap())), None);
    }

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        assert_eq!(escape("a,b+c"), "a\\,b\\+c");
        assert_eq!(escape("#a "), "\\#a\\ ");
        assert_eq!(escape("plain name"), "plain name");
    }
}
