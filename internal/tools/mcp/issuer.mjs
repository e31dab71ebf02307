// An OpenID Connect issuer for the tests, with the package oidc-provider. It prints its URL. Each
// line of standard input replaces its keys, and is answered by the new key's id; the end of
// standard input ends it.
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { Provider } from 'oidc-provider'

const audience = process.argv[2]
const scope = 'tools'

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
      id_token_signed_response_alg: 'ES256',
    })),
    scopes: [scope],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: () => ({ audience, scope, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }),
      },
    },
    // What a directory would say of the client.
    extraTokenClaims: (_ctx, token) => ({ groups: token.clientId === 'lead' ? ['leads'] : ['tools'] }),
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
