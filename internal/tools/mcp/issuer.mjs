// An OpenID Connect issuer for the tests, with the package oidc-provider. It prints its URL. Each
// line of standard input replaces its keys, and is answered by the new key's id; the end of
// standard input ends it. Any client may register, and people log in by their names, with any
// password.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { Provider } from 'oidc-provider'

const audience = process.argv[2]
const scope = 'tools'

// What a directory would say of clients and people.
const groups = { agent: ['tools'], lead: ['leads'], ada: ['tools'], bea: ['leads'], guest: ['guests'] }

function provider(issuer) {
  const kid = randomUUID()
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  const made = new Provider(issuer, {
    jwks: { keys: [{ ...key, kid, use: 'sig', alg: 'ES256' }] },
    clients: ['agent', 'lead'].map((name) => ({
      client_id: name,
      client_secret: `${name}-secret`,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      scope,
    })),
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    scopes: ['openid', scope],
    features: {
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: () => ({ audience, scope, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }),
      },
    },
    extraTokenClaims: (_ctx, token) => {
      const of = groups[token.accountId ?? token.clientId]
      return { groups: of, realm_access: { roles: of } }
    },
  })
  return { kid, answer: made.callback() }
}

let current
const server = createServer((request, response) => current.answer(request, response))
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  current = provider(issuer)
  console.log(issuer)
  const lines = createInterface({ input: process.stdin })
  lines.on('line', () => {
    current = provider(issuer)
    console.log(current.kid)
  })
  lines.on('close', () => process.exit(0))
})
