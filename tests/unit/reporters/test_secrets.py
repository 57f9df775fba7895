"""Secrets in texts: a table of secrets that are hidden, and one of texts that look alike and stay readable."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.reporters.privacy.secrets import KINDS, without_secrets

HEX = "3f786850e387550fdab836ed7e6dc881de23001b"
RANDOM = "wJalrXUtnFEMI7K7MDENGbPxRfiCYz9a8Q"
# By the kind that finds it: the text, and what is left of it.
SECRETS = {
    "token with a prefix": [
        ("hf_abcdefghijklmnopqrstuvwxyz", "***"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
        ("push github_pat_11ABCDEFG0123456789_abc now", "push *** now"),
        ("glpat-abcdefghij0123456789", "***"),
        ("xoxb-123456789012-abcdefghijkl", "***"),
        ("SG.abcdefghijklmnop.qrstuvwxyz", "***"),
        ("ATATT3xFfGF0abcdefghijklmnop", "***"),
        ("AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQ", "***"),
        (f"GOCSPX-{RANDOM} hvs.{RANDOM} tskey-auth-{RANDOM}", "*** *** ***"),
        (f"sq0csp-{RANDOM} glsa_{RANDOM} NRAK-{RANDOM}", "*** *** ***"),
    ],
    "token with a short prefix": [
        (f"gsk_{RANDOM} r8_{RANDOM}", "*** ***"),
        (f"xai-{RANDOM}, pplx-{RANDOM}", "***, ***"),
        (f"dapi{HEX[:32]}", "***"),
    ],
    "token of a Telegram bot": [("bot 123456789:AAHabcdefghijklmnopqrstuvwxyz01234", "bot ***")],
    "password behind a user": [
        ("requests.get(u, auth=('maria', 'geheim'))", "requests.get(u, auth=('maria', '***'))"),
        ('server.login("maria", "geheim")', 'server.login("maria", "***")'),
        ("HTTPBasicAuth('maria', \"it's\")", "HTTPBasicAuth('maria', \"***\")"),
    ],
    "password beside a user": [("{'user': 'maria', 'pass': 'geheim'}", "{'user': 'maria', 'pass': '***'}")],
    "password in a sentence": [
        ("the password is geheim7", "the password is ***"),
        ("Password for maria: geheim7", "Password for maria: ***"),
    ],
    "key in a sentence": [(f"your API key {RANDOM} is", "your API key *** is")],
    "what is kept in an object": [
        ("Fernet(b'c2VjcmV0c2VjcmV0=')", "Fernet(b'***')"),
        ("hmac.new('geheim-salz', text)", "hmac.new('***', text)"),
        ("SecretStr('geheim77')", "SecretStr('***')"),
    ],
    "what a password is compared with": [("if 'geheim' == self.password:", "if '***' == self.password:")],
    "credentials before a host and its port": [("maria:geheim7@db.example:5432/x", "maria:***@db.example:5432/x")],
    "private key of PuTTY": [(f"Private-Lines: 2\n{RANDOM}\n{RANDOM}==\nPriv", "Private-Lines: 2***\nPriv")],
    "default of an option": [
        (
            "add_argument('--password', help='of db', default='geheim')",
            "add_argument('--password', help='of db', default='***')",
        ),
        (
            f'add_argument("--api-key", type=str, default="{RANDOM}")',
            'add_argument("--api-key", type=str, default="***")',
        ),
    ],
    "element of XML": [("<password>geheim</password>", "<password>***</password>")],
    "password of a command": [
        ("openssl enc -pass pass:geheim", "openssl enc -pass pass:***"),
        ("machine h login maria password geheim", "machine h login maria password ***"),
        ("curl -s -u maria:geheim https://h", "curl -s -u maria:*** https://h"),
        ("sshpass -p geheim ssh h", "sshpass -p *** ssh h"),
        ("docker login -u maria -p geheim h", "docker login -u maria -p *** h"),
        ("mysql -u root -pgeheim db", "mysql -u root -p*** db"),
    ],
    "key of an API that begins with sk-": [("sk-proj-abcDEF0123456789xyz", "***")],
    "key of AWS": [("AKIAABCDEFGHIJKLMNOP", "***")],
    "key of Google": [("AIzaSyA-abcdefghijklmnopqrstuvwxyz01234", "***")],
    "JSON web token": [
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh", "***"),
        (f"eyJhcGlfYWRkcmVzcyI6{RANDOM}==", "***"),
    ],
    "private key": [
        ("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a *** b"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", "***"),
    ],
    "credentials in an address": [
        ("https://maria:geheim@example.org/x.git", "https://***@example.org/x.git"),
        ("postgres://u:p@ss@w@db:5432/x", "postgres://***@db:5432/x"),
        ("redis://:hunter2@cache/0", "redis://***@cache/0"),
    ],
    "webhook": [
        ("https://hooks.slack.com/services/T0/B0/XXX1", "https://hooks.slack.com/services/***"),
        ("'https://discord.com/api/webhooks/12/abc-d'", "'https://discord.com/api/webhooks/***'"),
        ("https://x.webhook.office.com/webhookb2/abc@def", "https://x.webhook.office.com/***"),
        ("https://api.telegram.org/bot123:AAF/sendMessage", "https://api.telegram.org/bot***"),
    ],
    "webhook of a host of one's own": [
        ("https://chat.example.org/hooks/8f3k2l9x7v5b1n4m", "https://chat.example.org/hooks/***"),
    ],
    "signature or token in an address": [
        ("https://x.blob/a?sv=1&sig=abc%2Bd&token=hunter2#a", "https://x.blob/a?sv=1&sig=***&token=***#a"),
        ("https://s3/x?X-Amz-Signature=abc&X-Amz-Date=1", "https://s3/x?X-Amz-Signature=***&X-Amz-Date=1"),
    ],
    "key or code in an address": [(f"https://h/x?key={HEX}&n=2", "https://h/x?key=***&n=2")],
    "authorization": [
        ("Authorization: Bearer swordfish", "Authorization: Bearer ***"),
        ("{'Authorization': 'Basic dTpw'}", "{'Authorization': 'Basic ***'}"),
        ('"Authorization": "swordfish"', '"Authorization": "***"'),
    ],
    "bearer": [(f"curl -H bearer {RANDOM}", "curl -H bearer ***")],
    "cookie": [("Cookie: session=abc; id=7", "Cookie: ***")],
    "e-mail address": [("write to maria.lee@example.org.", "write to ***.")],
    "option of a command": [
        ("train.py -- --api-key swordfish --steps 3", "train.py -- --api-key *** --steps 3"),
        ("train.py --api-token=swordfish", "train.py --api-token=***"),
        ("train.py --key swordfish", "train.py --key ***"),
        ("train.py --key X --auth X", "train.py --key *** --auth ***"),
        ("train.py --auth swordfish x", "train.py --auth *** x"),
        ("train.py --password 'a b' x", "train.py --password '***' x"),
        ("run(['--hf-token', 'swordfish'])", "run(['--hf-token', '***'])"),
        (f"--input-key {RANDOM}", "--input-key ***"),
    ],
    "what is given to a name": [
        ("password = ('geheim')", "password = ('***')"),
        ("password = (\n    'geheim'\n)", "password = (\n    '***'\n)"),
        ("PASSWORDS = ['geheim']", "PASSWORDS = ['***']"),
        (f"TOKENS = ('{RANDOM}',)", "TOKENS = ('***',)"),
        ("environ.get('DB_PASSWORD') or 'geheim'", "environ.get('DB_PASSWORD') or '***'"),
        (f"assert token != '{RANDOM}'", "assert token != '***'"),
        ("vault.set_password('geheim')", "vault.set_password('***')"),
        (f"cookies={{'sessionid': '{RANDOM}'}}", "cookies={'sessionid': '***'}"),
        ("contraseña = 'geheim'", "contraseña = '***'"),
        ("пароль='geheim'", "пароль='***'"),
        ("password = '''geheim'''", "password = '''***'''"),
        ('password = """geheim"""', 'password = """***"""'),
        ("password=fubar1 x", "password=*** x"),
        ("PGPASSWORD=geheim1 psql", "PGPASSWORD=*** psql"),
        ("password = 'swordfish'", "password = '***'"),
        ("X-Note: password=swordfish x", "X-Note: password=*** x"),
        ("password=abcX-Note: password=swordfish x", "password=*** password=*** x"),
        ('{"api_key": "swordfish"}', '{"api_key": "***"}'),
        (r"{\"api_key\": \"swordfish\"}", r'{\"api_key\": \"***"}'),
        ("os.environ['HF_TOKEN'] = 'abc123def456ghi'", "os.environ['HF_TOKEN'] = '***'"),
        (f"os.environ.setdefault('API_KEY', '{HEX}')", "os.environ.setdefault('API_KEY', '***')"),
        ("COMET_API_KEY=swordfish python x.py", "COMET_API_KEY=*** python x.py"),
        (f"aws_secret_access_key={RANDOM}", "aws_secret_access_key=***"),
        (f"aws_secret_access_key = {RANDOM[:20]}/{RANDOM}", "aws_secret_access_key = ***"),
        ("DB_PASS: 'swordfish'", "DB_PASS: '***'"),
        ("DB_PASS: swordfish", "DB_PASS: ***"),
        ("DB_PASS=swordfish", "DB_PASS=***"),
        ('pwd="swordfish"', 'pwd="***"'),
        ("pwd=hunter2 x", "pwd=*** x"),
        ("host=db password=swordfish user=u", "host=db password=*** user=u"),
        ("password: hunter2", "password: ***"),
        (f'wandb.login(key="{HEX}")', 'wandb.login(key="***")'),
        (f'wandb.login("{HEX}")', 'wandb.login("***")'),
        (f"login(key='{HEX}', x=1)", "login(key='***', x=1)"),
        ("AccountName=a;AccountKey=abc+/d==;E=x", "AccountName=a;AccountKey=***;E=x"),
        ("Endpoint=sb://x/;SharedAccessKey=abc=", "Endpoint=sb://x/;SharedAccessKey=***"),
        ("password: str = 'swordfish'", "password: str = '***'"),
        ("secret: Optional[str] = 'swordfish'", "secret: Optional[str] = '***'"),
        ("clientSecret: 'swordfish'", "clientSecret: '***'"),
        ("self.db_password='sword\"fish'", "self.db_password='***'"),
        ('x = "password=hunter2"', 'x = "password=***"'),
        ("if password == 'swordfish':", "if password == '***':"),
        (f"NEPTUNE_API_TOKEN = b'{RANDOM}'", "NEPTUNE_API_TOKEN = b'***'"),
        ("X-API-Key: abc123", "X-API-Key: ***"),
        (f"password='{'x1' * 900}' + y", "password='***' + y"),
    ],
}
READABLE = [
    "hf_model_for_classification = hf_model.load_from_pretrained(hf_config.num_attention_heads)",
    "secret = 42",
    "figure@2x.png",
    "authorization: none",
    "headers = {'Authorization': 'token ' + token}",
    "cookie: chocolate",
    "logging.error('--token is not set')",
    "environment={'WANDB_API_KEY': current_api_key}",
    "login(password=new_password)",
    "os.environ['GOOGLE_APPLICATION_CREDENTIALS'] = local_path",
    "the password is required, and the api key must_be_set_beforehand",
    "tokens = ['[CLS]', '[SEP]', 'block1_conv2_bn2']",
    "keys = ['dense_1/kernel', 'block5_conv3_bn2_relu']",
    "get_secret('of-the-database') or 'none'",
    "if 'accuracy' == monitor_key:",
    "shape: 3@28:28",
    "<name>conv2d_1</name>",
    "add_argument('--tokenizer', default='bert-base-uncased')",
    "password=(name)",
    "r8_of_a_very_long_name_of_a_layer_in_a_model",
    "xai-explanations-of-attributions",
    "curl -u maria https://h",
    "python -u train.py:main",
    "mysql -p db",
    "docker run -p 8080:80 image",
    "login('maria', password)",
    "auth=(user, password)",
    "login_layer(name='a', kind='b')",
    "12:AA",
    "key_dim=64",
    "monkey='banana1234567890123'",
    "token_count = 12",
    "num_tokens=512",
    'tokenizer="bert-base"',
    'key="value"',
    "sorted(x, key=lambda pair: pair[1])",
    "sorted(names, key=str.lower)",
    "keys=['a', 'b']",
    "key = tf.random.key(3)",
    "tf.random.key",
    f"dense/kernel sha256 {HEX}",
    f"layer_hash={HEX}",
    "tensorflow 2.21.0-dev20260101+3f786850e387550fdab836ed7e6dc881de23001b",
    f"git_version: v2.21.0-rc0-12-g{HEX[:12]}",
    "pwd=os.getcwd()",
    'password=os.environ["X"]',
    "password = os.getenv('X')",
    "password=getpass.getpass()",
    'getpass.getpass("Password: "), user="maria"',
    "password=args.password",
    "login(password=password)",
    "PWD=/work/project python train.py",
    "secret: str",
    "def login(password: str, token: Optional[str] = None): ...",
    "password=None",
    "api_key=''",
    'f"--token={token}"',
    "api_key = f'{key}'",
    "use_auth_token=True",
    "--keras 3",
    "--key-dim 64 --num-tokens 5 --author Jo --tokens 7",
    "--sort-key name",
    "--pad-token '[PAD]'",
    "--password --steps 3",
    "oov_token='<OOV>'",
    "pad_token='<|endoftext|>'",
    "mask_token = '[MASK]'",
    "start_token='startseq'",
    "eos_token='special_token_12'",
    "feature_key='encoder/block_7/attention'",
    "key='block1a_se_1_bn_2_relu'",
    "key='ResNet50V2'",
    "('password', 'username')",
    "x = a if key == 'b' else c",
    "{'token': 5, 'key': 3}",
    "The key: a layer that computes in float32.",
    "wrong password: it has to be given twice",
    "forward_pass='train'",
    "n_pass=3",
    "x @ w.T",
    "@tf.function",
    "https://github.com/org/repo/blob/main/hooks/train.py#L3",
    "https://example.org/a@b/c?page=2&sort=key",
    "sk-learn-pipeline-with-steps",
    "bearer of news",
    "The secret is a smaller scale.",
    "Set `TF_ENABLE_AUTO_MIXED_PRECISION=1`: the key is read once.",
    "the loss scale fell from 32768 to 5.82e-11",
    "TOKENIZERS_PARALLELISM=false",
    "opt = LossScaleOptimizer(Adam(1e-3))",
    "signature: serving_default (None, 3)",
    "password=***",
    "api_key='xxxxxxxx'",
]


@pytest.mark.parametrize(("name", "text", "shown"), [(n, *both) for n, rows in SECRETS.items() for both in rows])
def test_secrets_are_hidden(name: str, text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown
    (kind,) = [kind for kind in KINDS if kind.name == name]
    assert kind.hide(text) != text


def test_every_kind_is_shown_at_work() -> None:
    assert set(SECRETS) == {kind.name for kind in KINDS}


@pytest.mark.parametrize("text", READABLE)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


PIECES = [
    *("key=", 'key="', "password=", "password='", "--key ", "--key", "://", "@", "a.", "eyJ", "sk-", "-----BEGIN "),
    *("-----BEGIN PRIVATE KEY-----", "Authorization: ", "Cookie: ", "?key=", "&sig=", "https://h/", "hooks/", "x"),
    *(" ", "\n", '"', "'", "\\", "=", ":", "(", "[", "-", "_", "/", "AKIA", "hf_", "login(", ": str | x", "1"),
    *("auth=('", "', '", "curl ", " -u a:", "docker login ", " -p", "mysql", "123456789:AA", "r8_", "dapi"),
    "a.--key",
    *(
        "'--password', default='",
        "<password>",
        "</",
        " or '",
        " != '",
        "' == password",
        "user': 'a', 'pass': '",
        "password is ",
    ),
    *(
        "api key ",
        "Fernet('",
        "Private-Lines: 1",
        "\n" + "A" * 20,
        "a:b1",
        "@h:80",
        "set_password('",
        "login a password ",
        "hv",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.integers(1, 4))
def test_whatever_is_hidden_is_hidden_once(text: str, times: int) -> None:
    once = without_secrets(text * times)
    assert without_secrets(once) == once


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_text_takes_longer_than_its_length_allows(kind: object) -> None:
    """Repetitions of what the patterns look for, alone and in pairs, 50,000 characters of each: searching anew from
    every one of them would take many times as long."""
    seed = random.randrange(10**6)
    chosen = random.Random(seed)
    pairs = [*PIECES, *("".join(chosen.choices(PIECES, k=2)) for _ in range(20))]
    for piece in pairs:
        text = piece * (50_000 // len(piece))
        started = time.process_time()
        kind.hide(text)  # type: ignore[attr-defined]
        kind.hide(f"key='{text}")  # type: ignore[attr-defined]
        assert time.process_time() - started < 2, (piece, seed)
