# Written by rackwright: the site's proxy.
export HTTP_PROXY=http://proxy.example.com:3128 http_proxy=http://proxy.example.com:3128
export HTTPS_PROXY=http://proxy.example.com:3128 https_proxy=http://proxy.example.com:3128
export NO_PROXY=localhost,127.0.0.1,::1,test.example,.test.example,10.9.0.0/24,10.10.0.0/24,10.11.0.0/16,head1,.example.org,192.0.2.0/24 no_proxy=localhost,127.0.0.1,::1,test.example,.test.example,10.9.0.0/24,10.10.0.0/24,10.11.0.0/16,head1,.example.org,192.0.2.0/24
